/* The program: finds the subcommand, runs it, and reports its error. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/scope.h"
#include "core/text.h"
#include "harness/commands/command.h"
#include "harness/run/program.h"
#include "harness/terminal/stop.h"

static void print_overview(FILE *out)
{
    fprintf(out, "Usage: mtil COMMAND [OPTION...] [ARGUMENT...]\n"
                 "Continual learning of vision-language models with mixtures of experts.\n\n");
    for (size_t i = 0; commands[i] != NULL; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\n  mtil COMMAND --help   options and an example\n  mtil --version        the program's version\n");
}

static void print_version(void)
{
    const char *commit = program_commit();
    printf("mtil " MTIL_VERSION "%s%s%s\n", *commit != 0 ? " (" : "", commit, *commit != 0 ? ")" : "");
}

/* After SIGPIPE (`mtil query … | head`) every failed write is due to the reader that left, and needs no message. */
static int print_error(const struct error *error, const struct stop *stop)
{
    int number = atomic_load(&stop->signal);
    if (number == SIGPIPE)
        return EXIT_SIGNAL + SIGPIPE;
    SCOPED(text_free) struct text message = {0};
    text_add_visible(&message, error->message);
    fprintf(stderr, "mtil: %s%s\n", error->code == ERROR_STOPPED ? "" : "error: ", message.data);
    if (error->code == ERROR_STOPPED)
        return EXIT_SIGNAL + number;
    return error->code == ERROR_ARGUMENT ? EXIT_USAGE : error->code == ERROR_BUSY ? EXIT_BUSY : EXIT_FAILED;
}

static status run_command(const struct command *command, const struct command_line *line, struct stop *stop,
                          struct error *error)
{
    SCOPED(progress_destroy_at) struct progress *progress = NULL;
    struct progress_settings settings = {.stream = stderr, .style = line->quiet ? PROGRESS_QUIET : PROGRESS_AUTOMATIC};
    progress_create(&progress, &settings);
    struct log log = progress_log(progress, line->quiet ? LOG_WARN : line->verbose ? LOG_DEBUG : LOG_INFO);
    struct command_call call = {.options = line->options,
                                .arguments = line->arguments,
                                .argument_count = line->argument_count,
                                .out = stdout,
                                .verbose = line->verbose,
                                .log = &log,
                                .progress = progress,
                                .stop = stop};
    return command->run(&call, error);
}

/* A full disk behind stdout shows at the latest when it is flushed. */
static status flush_results(struct error *error)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return OK;
    int number = errno; /* 0: an earlier write failed, and its errno is gone */
    if (number != 0)
        return error_errno(error, number, "standard output: could not be written to the end");
    return error_set(error, ERROR_IO, "standard output: could not be written to the end");
}

static status dispatch(int argc, char **argv, struct stop *stop, struct error *error)
{
    const struct command *command;
    size_t used;
    TRY(command_find((const char *const *)argv, (size_t)argc, &command, &used, error));
    SCOPED(command_line_free) struct command_line line = {0};
    TRY(command_parse(command, argc - (int)used + 1, argv + used - 1, &line, error));
    if (!line.help)
        return run_command(command, &line, stop, error);
    command_help(command, stdout);
    return OK;
}

static status print_help(int argc, char **argv, struct error *error)
{
    const struct command *command;
    size_t used;
    TRY(command_find((const char *const *)argv, (size_t)argc, &command, &used, error));
    command_help(command, stdout);
    return OK;
}

/* A file that got the descriptor of a closed standard stream would receive printed text. Opens them for reading
 * only, so that printing is an error. */
static void occupy_standard_streams(void)
{
    int file;
    do
        file = open("/dev/null", O_RDONLY);
    while (file >= 0 && file <= STDERR_FILENO);
    close(file);
}

int main(int argc, char **argv)
{
    static struct stop stop;
    occupy_standard_streams();
    stop_on_signals(&stop);
    if (argc < 2) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    struct error error = {.code = OK};
    status result = OK;
    bool wants_help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0;
    if (wants_help && argc > 2)
        result = print_help(argc - 2, argv + 2, &error);
    else if (wants_help)
        print_overview(stdout);
    else if (strcmp(argv[1], "--version") == 0)
        print_version();
    else
        result = dispatch(argc - 1, argv + 1, &stop, &error);
    NEXT(result, flush_results(&error));
    return result == OK ? EXIT_OK : print_error(&error, &stop);
}
