/* Replays folders in the format of the model fixtures and compares every number.
 *
 *     build/tests/replay_model [--backend cpu|cuda|auto] FOLDER…
 *
 * Prints a line per quantity with the largest deviation and its tolerance; exits with 0 only when all hold, with 77
 * when a folder is absent. */
#include <stdio.h>
#include <string.h>

#include "core/file.h"
#include "tests/replay/fixture.h"

static status replay(const char *folder, const char *backend, bool *good, struct error *error)
{
    struct report report = {.folder = folder};
    struct fixture fixture;
    status result = fixture_open(&fixture, folder, backend, &report, error);
    static status (*const parts[])(struct fixture *, struct error *) = {
        replay_forward, replay_gradients, replay_trajectory, replay_selector, replay_metrics};
    for (size_t i = 0; result == OK && i < sizeof parts / sizeof *parts; i++)
        result = parts[i](&fixture, error);
    *good = report_finish(&report);
    fixture_close(&fixture);
    return result;
}

int main(int argc, char **argv)
{
    const char *backend = "auto";
    int first = 1, failed = 0, absent = 0;
    if (argc > 2 && strcmp(argv[1], "--backend") == 0) {
        backend = argv[2];
        first = 3;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: replay_model [--backend cpu|cuda|auto] FOLDER...\n");
        return 2;
    }
    for (int i = first; i < argc; i++) {
        struct error error;
        bool good = false;
        if (!file_is_directory(argv[i])) {
            printf("%s: skipped, no such folder\n", argv[i]);
            absent++;
        } else if (replay(argv[i], backend, &good, &error) != OK) {
            bool no_device = error.code == ERROR_DEVICE;
            fprintf(stderr, "%s: %s%s\n", argv[i], no_device ? "skipped, " : "", error.message);
            absent += no_device;
            failed += !no_device;
        } else if (!good) {
            failed++;
        }
    }
    return failed > 0 ? 1 : absent > 0 ? 77 : 0;
}
