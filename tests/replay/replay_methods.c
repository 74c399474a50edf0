/* Replays folders in the format of the method fixtures and compares every number.
 *
 *     build/tests/replay_methods [--backend cpu|cuda|auto] [--members N] [--stops] [--method NAME] FOLDER…
 *
 * Trajectories are trained by N replicas that share every batch; with --stops every iteration ends with a resume file from
 * which another experiment goes on.
 * What a folder holds is told by its files; one without any of its own is taken as a folder of such folders. Prints a
 * line per quantity with the largest deviation and its tolerance; exits with 0 only when all hold, with 77 when a
 * folder is absent. */
#include "tests/replay/replay_methods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/text.h"

static const struct part {
    const char *file; /* only this kind of folder has it */
    void (*replay)(struct method_fixture *fixture);
} parts[] = {{"bank.safetensors", replay_merge_policies},
             {"features.safetensors", replay_icarl},
             {"expect.safetensors", replay_rail},
             {"classes.safetensors", replay_classes},
             {"common.safetensors", replay_finetune}};

struct tally {
    size_t replayed, failed, absent;
};

static void replay(const char *folder, const struct part *part, const struct method_fixture *options,
                   struct tally *tally)
{
    struct report report = {.folder = folder};
    struct method_fixture fixture = *options;
    fixture.folder = folder;
    fixture.report = &report;
    fixture.config = recorded_json(folder, "config.json");
    fixture.tolerances = json_object_get(fixture.config, "tolerances");
    part->replay(&fixture);
    json_decref(fixture.config);
    tally->replayed++;
    tally->failed += !report_finish(&report);
}

static void replay_folder(const char *folder, const struct method_fixture *options, bool descend, struct tally *tally)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *file = path_format("%s/%s", folder, parts[i].file);
        bool found = file != NULL && file_exists(file);
        free(file);
        if (found) {
            replay(folder, &parts[i], options, tally);
            return;
        }
    }
    struct directory directory;
    struct error ignored;
    if (!descend || directory_list(&directory, folder, &ignored) != OK)
        return;
    for (size_t i = 0; i < directory.count; i++) {
        char *inner = path_format("%s/%s", folder, directory.names[i]);
        if (inner != NULL && file_is_directory(inner))
            replay_folder(inner, options, false, tally);
        free(inner);
    }
    directory_free(&directory);
}

/* The number of the first folder, 0 when an option is not understood. */
static int read_options(int argc, char **argv, struct method_fixture *options, struct backend_settings *backend)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        int64_t members = 0;
        if (strcmp(argv[i], "--stops") == 0)
            options->stops = true;
        else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            backend->name = argv[++i];
        else if (strcmp(argv[i], "--method") == 0 && i + 1 < argc)
            options->method = argv[++i];
        else if (strcmp(argv[i], "--members") == 0 && i + 1 < argc && parse_integer(argv[++i], &members) && members > 0)
            options->members = (size_t)members;
        else
            return 0;
    }
    return i < argc ? i : 0;
}

int main(int argc, char **argv)
{
    struct backend_settings backend = {.name = "auto"};
    struct method_fixture options = {.backend = &backend, .members = 1};
    struct tally tally = {0};
    int first = read_options(argc, argv, &options, &backend);
    if (first == 0) {
        fprintf(stderr,
                "usage: replay_methods [--backend cpu|cuda|auto] [--members N] [--stops] [--method NAME] FOLDER...\n");
        return 2;
    }
    for (int i = first; i < argc; i++) {
        size_t before = tally.replayed + tally.absent;
        replay_folder(argv[i], &options, true, &tally);
        if (tally.replayed + tally.absent == before) {
            printf("%s: skipped, there is nothing to replay\n", argv[i]);
            tally.absent++;
        }
    }
    return tally.failed > 0 ? 1 : tally.absent > 0 ? 77 : 0;
}
