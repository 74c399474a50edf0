/* Replays folders in the format of the model fixtures and compares every number.
 *
 *     build/tests/replay_model [--backend cpu|cuda|auto] [--precision f32|bf16] FOLDER…
 *
 * Prints a line per quantity with the largest deviation and its tolerance; exits with 0 only when all hold, with 77
 * when a folder is absent. */
#include <stdio.h>
#include <string.h>

#include "tests/replay/fixture.h"

static status replay(const char *folder, const struct backend_settings *backend, bool *good, struct error *error)
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

static bool read_option(struct backend_settings *backend, const char *name, const char *value)
{
    bool bf16 = strcmp(value, "bf16") == 0;
    if (strcmp(name, "--backend") == 0)
        backend->name = value;
    else if (strcmp(name, "--precision") == 0 && (bf16 || strcmp(value, "f32") == 0))
        backend->precision = bf16 ? PRECISION_BF16 : PRECISION_F32;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    struct backend_settings backend = {.name = "auto"};
    int first = 1;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2)
        if (!read_option(&backend, argv[first], argv[first + 1]))
            break;
    if (first >= argc || strncmp(argv[first], "--", 2) == 0) {
        fprintf(stderr, "usage: replay_model [--backend cpu|cuda|auto] [--precision f32|bf16] FOLDER...\n");
        return 2;
    }
    return replay_folders(argv + first, argc - first, &backend, replay);
}
