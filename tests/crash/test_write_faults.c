/* The n-th call that writes fails, for every n: the command says so once and leaves nothing half, or it ends well; the
 * same command given again leaves what it had left undisturbed, and nothing else.
 *
 *     MTIL_CRASH_FAULTS=0 test_write_faults     every call in every way; 5 a scenario otherwise, 2 a slow one
 */
#include "tests/crash/ground.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/rng.h"

static const char *const modes[] = {"fail", "kill", "full", "short", "interrupted"};

enum { MODES = sizeof modes / sizeof *modes, ANY_CALL = 3 /* the others are of writes */ };

static struct outcome run_with(const struct trial *trial, const char *fault, const char *log)
{
    setenv("LD_PRELOAD", FAULTS, 1);
    setenv("MTIL_FAULT", fault, 1);
    setenv("MTIL_FAULT_LOG", log, 1);
    struct outcome outcome = program_run(&ground, &(struct launch){.arguments = trial->scenario->command});
    unsetenv("LD_PRELOAD");
    return outcome;
}

static char *read_log(const char *log)
{
    struct bytes bytes;
    struct error error;
    if (file_read(log, FILE_LIMIT, &bytes, &error) != OK)
        return strdup("");
    remove(log);
    return (char *)bytes.data;
}

/* The calls of the command, a line each. */
static char *list_calls(struct trial *trial)
{
    char *log = workshop_path(&ground, "calls.txt");
    trial_reset();
    struct outcome outcome = run_with(trial, "0 count", log);
    assert_int_equal(outcome.exit_status, 0);
    outcome_free(&outcome);
    trial_expect_whole(trial, "its calls counted");
    char *calls = read_log(log);
    free(log);
    assert_int_not_equal(words_count(calls, "\n"), 0);
    return calls;
}

struct point {
    size_t call;
    const char *mode;
};

/* Every call in every way that makes a difference; the caller frees. */
static struct point *list_points(struct trial *trial, size_t *count)
{
    char *calls = list_calls(trial), *next = calls;
    struct point *points = calloc(words_count(calls, "\n") * MODES, sizeof *points);
    assert_non_null(points);
    *count = 0;
    for (char *line; (line = strsep(&next, "\n")) != NULL && *line != 0;)
        for (size_t i = 0; i < MODES; i++)
            if (i < ANY_CALL || strstr(line, "write ") != NULL)
                points[(*count)++] = (struct point){strtoul(line, NULL, 10), modes[i]};
    free(calls);
    return points;
}

static void expect_one_message(const struct trial *trial, const struct outcome *outcome, const char *after)
{
    const char *line = strstr(outcome->errors.data, "mtil: error: ");
    if (outcome->exit_status <= 0 || line == NULL || words_count(outcome->errors.data, "mtil: error:") != 1 ||
        strchr(line, '\n') == NULL || strchr(line, '\n')[1] != 0)
        fail_msg("%s, %s: expected one error, found exit status %d, signal %d: %s", trial->scenario->name, after,
                 outcome->exit_status, outcome->signal, outcome->errors.data);
}

static void try_fault(struct trial *trial, const struct point *point)
{
    const char *mode = point->mode;
    char fault[64], after[640], *log = workshop_path(&ground, "calls.txt");
    trial_reset();
    snprintf(fault, sizeof fault, "%zu %s", point->call, mode);
    trial->caches_may_lack = mode[0] == 'f';
    struct outcome outcome = run_with(trial, fault, log);
    char *calls = read_log(log);
    snprintf(after, sizeof after, "%s %.500s", mode, calls);
    after[strcspn(after, "\n")] = 0;
    bool cannot_remove = strstr(calls, " unlink ") != NULL; /* what is left then is left to the next */
    if (outcome.exit_status == 0 && !cannot_remove)
        trial_expect_whole(trial, after);
    else if (strcmp(mode, "kill") == 0 && outcome.exit_status != 0)
        assert_int_equal(outcome.signal, SIGKILL);
    else if (outcome.exit_status != 0)
        expect_one_message(trial, &outcome, after);
    trial_expect_nothing_half(trial, after);
    trial_finish(trial, after);
    outcome_free(&outcome);
    free(calls);
    free(log);
}

static void survives_faults(void **state)
{
    const struct scenario *scenario = *state;
    struct trial trial;
    size_t count, most = (size_t)crash_tries(scenario, "MTIL_CRASH_FAULTS", 5);
    trial_open(&trial, scenario);
    struct point *points = list_points(&trial, &count);
    if (scenario->faults_most > 0 && (most == 0 || most > scenario->faults_most))
        most = scenario->faults_most;
    size_t tries = most == 0 || most > count ? count : most;
    struct rng rng =
        rng_make((uint64_t)crash_setting("MTIL_CRASH_SEED", 1), RNG_TEST, (uint32_t)(scenario - scenarios), 0);
    for (size_t i = 0; i < tries; i++)
        try_fault(&trial, &points[tries == count ? i : rng_below(&rng, i, (uint32_t)count)]);
    printf("%s: %zu of %zu faults\n", scenario->name, tries, count);
    free(points);
    trial_close(&trial);
}

int main(void)
{
    return crash_main("write faults", survives_faults);
}
