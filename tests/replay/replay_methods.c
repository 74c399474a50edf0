/* Replays folders in the format of the method fixtures and compares every number.
 *
 *     build/tests/replay_methods [--backend cpu|cuda|auto] FOLDER…
 *
 * What a folder holds is told by its files; one without any of its own is taken as a folder of such folders. Prints a
 * line per quantity with the largest deviation and its tolerance; exits with 0 only when all hold, with 77 when a
 * folder is absent. */
#include "tests/replay/replay_methods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

static const struct part {
    const char *file; /* only this kind of folder has it */
    status (*replay)(struct method_fixture *fixture, struct error *error);
} parts[] = {{"bank.safetensors", replay_merge_policies}, {"features.safetensors", replay_icarl}};

struct tally {
    size_t replayed, failed, absent;
};

static status open_fixture(struct method_fixture *fixture, struct error *error)
{
    json_error_t fault;
    char *path = path_format("%s/config.json", fixture->folder);
    fixture->config = path != NULL ? json_load_file(path, 0, &fault) : NULL;
    fixture->tolerances = json_object_get(fixture->config, "tolerances");
    free(path);
    return fixture->tolerances != NULL
               ? OK
               : error_set(error, ERROR_FORMAT, "%s/config.json: expected an object with tolerances, found %s",
                           fixture->folder, fixture->config != NULL ? "none" : fault.text);
}

static void replay(const char *folder, const struct part *part, const struct backend_settings *backend,
                   struct tally *tally)
{
    struct report report = {.folder = folder};
    struct method_fixture fixture = {.folder = folder, .backend = backend, .report = &report};
    struct error error;
    status result = open_fixture(&fixture, &error);
    if (result == OK)
        result = part->replay(&fixture, &error);
    json_decref(fixture.config);
    if (result == ERROR_DEVICE) {
        printf("%s: skipped, %s\n", folder, error.message);
        tally->absent++;
        return;
    }
    if (result != OK)
        fprintf(stderr, "%s: %s\n", folder, error.message);
    tally->replayed++;
    tally->failed += !report_finish(&report) || result != OK;
}

static void replay_folder(const char *folder, const struct backend_settings *backend, bool descend, struct tally *tally)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *file = path_format("%s/%s", folder, parts[i].file);
        bool found = file != NULL && file_exists(file);
        free(file);
        if (found) {
            replay(folder, &parts[i], backend, tally);
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
            replay_folder(inner, backend, false, tally);
        free(inner);
    }
    directory_free(&directory);
}

int main(int argc, char **argv)
{
    struct backend_settings backend = {.name = "auto"};
    struct tally tally = {0};
    int first = 1;
    if (first + 1 < argc && strcmp(argv[first], "--backend") == 0) {
        backend.name = argv[first + 1];
        first += 2;
    }
    if (first >= argc || argv[first][0] == '-') {
        fprintf(stderr, "usage: replay_methods [--backend cpu|cuda|auto] FOLDER...\n");
        return 2;
    }
    for (int i = first; i < argc; i++) {
        size_t before = tally.replayed + tally.absent;
        replay_folder(argv[i], &backend, true, &tally);
        if (tally.replayed + tally.absent == before) {
            printf("%s: skipped, there is nothing to replay\n", argv[i]);
            tally.absent++;
        }
    }
    return tally.failed > 0 ? 1 : tally.absent > 0 ? 77 : 0;
}
