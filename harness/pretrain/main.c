/* mtil-pretrain FOLDER [KEY=VALUE…] makes the small CLIP that ships. A tool for developers: make pretrain. */
#include <stdio.h>
#include <string.h>

#include "harness/exit_status.h"
#include "harness/pretrain/pretrain.h"
#include "models/backend_options.h"

static const struct option keys[] = {BACKEND_OPTIONS("cpu", "auto", "0"),
                                     {.name = "seed",
                                      .type = OPTION_INTEGER,
                                      .minimum = 0,
                                      .maximum = 9007199254740992.0,
                                      .fallback = "1",
                                      .help = "decides weights, drawings and their order"},
                                     {.name = "plain_steps",
                                      .type = OPTION_INTEGER,
                                      .minimum = 0,
                                      .maximum = 1e6,
                                      .fallback = "2400",
                                      .help = "steps on plain drawings"},
                                     {.name = "harder_steps",
                                      .type = OPTION_INTEGER,
                                      .minimum = 0,
                                      .maximum = 1e6,
                                      .fallback = "1000",
                                      .help = "steps on harder drawings"},
                                     {.name = "threads",
                                      .type = OPTION_INTEGER,
                                      .minimum = 0,
                                      .maximum = 1024,
                                      .fallback = "0",
                                      .help = "threads, 0: one per core; the result does not depend on it"},
                                     {0}};

static int print_usage(void)
{
    fprintf(stderr, "Usage: mtil-pretrain FOLDER [KEY=VALUE...]\n"
                    "Writes mini-clip.safetensors and mini-vocabulary.txt into FOLDER.\n\n");
    for (const struct option *key = keys; key->name != NULL; key++)
        fprintf(stderr, "  %-13s %s (default %s)\n", key->name, key->help, key->fallback);
    return EXIT_USAGE;
}

static status read_words(struct options *options, char **words, struct error *error)
{
    for (; *words != NULL; words++) {
        char *value = strchr(*words, '=');
        if (value == NULL)
            return error_set(error, ERROR_ARGUMENT, "command line: expected KEY=VALUE, found \"%s\"", *words);
        *value++ = 0;
        TRY(options_set(options, *words, value, "command line", error));
    }
    return OK;
}

static status run(const struct options *options, const char *folder, const struct stop *stop, struct error *error)
{
    struct pretrain_settings settings = pretrain_defaults();
    struct progress *progress;
    settings.seed = (uint64_t)options_integer(options, "seed");
    settings.plain_steps = (size_t)options_integer(options, "plain_steps");
    settings.harder_steps = (size_t)options_integer(options, "harder_steps");
    settings.backend = backend_settings_of(options);
    settings.backend.threads = (size_t)options_integer(options, "threads");
    TRY(progress_create(&progress, &(struct progress_settings){.stream = stderr, .style = PROGRESS_AUTOMATIC}, error));
    struct log log = progress_log(progress, LOG_INFO);
    status result = pretrain(&settings, folder, &log, progress, stop, error);
    progress_destroy(progress);
    return result;
}

int main(int argc, char **argv)
{
    static struct stop stop;
    struct options *options = NULL;
    struct error error;
    if (argc < 2 || *argv[1] == '-')
        return print_usage();
    stop_on_signals(&stop);
    status result = options_create(&options, keys, &error);
    NEXT(result, read_words(options, argv + 2, &error));
    NEXT(result, run(options, argv[1], &stop, &error));
    options_destroy(options);
    if (result == OK)
        return EXIT_OK;
    fprintf(stderr, "mtil-pretrain: %s\n", error.message);
    return result == ERROR_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}
