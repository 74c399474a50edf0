/* Kills at random instants: the same command given again leaves what it had left undisturbed, and nothing else.
 *
 *     MTIL_CRASH_KILLS=200 MTIL_CRASH_SEED=7 test_kills     20, fewer of what is slow, and 1 otherwise
 */
#include "tests/crash/ground.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "core/rng.h"

static void wait_seconds(double seconds)
{
    time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)((seconds - (double)whole) * 1e9)}, NULL);
}

/* Whether it was killed, and had not ended before. */
static bool run_killed(const struct trial *trial, double delay)
{
    struct process process;
    program_start(&process, &ground, &(struct launch){.arguments = trial->scenario->command});
    wait_seconds(delay);
    kill(process.id, SIGKILL);
    struct outcome outcome = program_wait(&process);
    while (wait(NULL) > 0) /* the runs of a sweep: they end with it */
        ;
    bool killed = outcome.signal == SIGKILL;
    if (!killed && outcome.exit_status != 0)
        fail_msg("%s: exit status %d, signal %d: %s", trial->scenario->name, outcome.exit_status, outcome.signal,
                 outcome.errors.data);
    outcome_free(&outcome);
    return killed;
}

/* One time in four it is killed again on its way to the end. False: it ended before it was killed. */
static bool kill_and_go_on(struct trial *trial, struct rng *rng, uint64_t *draw)
{
    char after[64];
    trial_reset();
    do {
        double delay = trial->seconds * (double)rng_uniform(rng, (*draw)++);
        snprintf(after, sizeof after, "killed after %.4f s", delay);
        if (!run_killed(trial, delay)) {
            trial_expect_whole(trial, "ended before it was killed");
            return false;
        }
        trial_expect_nothing_half(trial, after);
    } while (rng_uniform(rng, (*draw)++) < 0.25f);
    trial_finish(trial, after);
    return true;
}

static void survives_kills(void **state)
{
    const struct scenario *scenario = *state;
    struct trial trial;
    long kills = crash_tries(scenario, "MTIL_CRASH_KILLS", 20);
    size_t index = (size_t)(scenario - scenarios);
    struct rng rng = rng_make((uint64_t)crash_setting("MTIL_CRASH_SEED", 1), RNG_TEST, (uint32_t)index, 0);
    uint64_t draw = 0;
    trial_open(&trial, scenario);
    for (long i = (long)index; i < kills;)
        i += kill_and_go_on(&trial, &rng, &draw) ? (long)scenario_count : 0;
    trial_close(&trial);
}

int main(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ? 1 : crash_main("kills", survives_kills);
}
