/* Replays folders in the format of the model fixtures and compares every number.
 *
 *     build/tests/replay_model [--backend cpu|cuda|auto] [--precision f32|bf16] FOLDER…
 *
 * Prints a line per quantity with the largest deviation and its tolerance; exits with 0 only when all hold, with 77
 * when a folder is absent. */
#include "tests/replay/fixture.h"

static bool replay(const char *folder, const struct backend_settings *backend)
{
    struct report report = {.folder = folder};
    struct fixture fixture;
    fixture_open(&fixture, folder, backend, &report);
    replay_forward(&fixture);
    replay_gradients(&fixture);
    replay_trajectory(&fixture);
    replay_selector(&fixture);
    replay_metrics(&fixture);
    fixture_close(&fixture);
    return report_finish(&report);
}

int main(int argc, char **argv)
{
    return replay_main("replay_model", argc, argv, replay);
}
