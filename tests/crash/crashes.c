/* Commands that write, killed or failing at some instant in a folder that can be set back: the same command given again leaves what
 * it had left undisturbed, and nothing else.
 *
 *     MTIL_CRASH_SEED=7 MTIL_CRASH_KILLS=200 crashes kills   at random instants; 20, fewer of what is slow, and 1 otherwise
 *     MTIL_CRASH_FAULTS=0 crashes write_faults               the n-th call that writes, for every n in every way; 5 a scenario
 *                                                            otherwise, 2 a slow one
 */
#include <fts.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/digest.h"
#include "core/file.h"
#include "core/rng.h"
#include "tests/end_to_end/rows.h"

#define SMALL "--quiet data.order=mnist,eurosat training.iterations=3 run.checkpoint_every=2 selector.iterations=3 "
#define RUN "run tiny.yaml " SMALL "run.folder=work/runs run.database=work/"
#define REPORT "report work/a.db --out work/report --figures=false --quiet"
#define TWO_RUNS RUN "a.db run.seeds=1\n" RUN "b.db run.seeds=2"

/* Everything is written below work/. */
static const struct scenario {
    const char *name;
    const char *prepare; /* commands, an extra line each, whose results are there before; NULL: none */
    const char *command;
    size_t faults_most; /* that are tried; 0: all */
    bool slow;          /* is tried less often, unless the number is given */
} scenarios[] = {
    {.name = "run", .command = RUN "results.db run.checkpoints=all"},
    {.name = "cache", .command = RUN "results.db run.cache=disk run.cache_folder=work/cache"},
    {.name = "whole models", .command = RUN "results.db method.name=continual_ft", .faults_most = 20},
    {.name = "tasks alone", .command = RUN "results.db method.name=finetune method.train=adapters", .faults_most = 20},
    {.name = "sweep",
     .command = "sweep tiny.yaml --grid seed=1,2 --jobs 1 " SMALL "run.folder=work/runs run.database=work/results.db"},
    {.name = "merge", .prepare = TWO_RUNS, .command = "merge-db work/all.db work/a.db work/b.db --quiet"},
    {.name = "merge into", .prepare = TWO_RUNS, .command = "merge-db work/a.db work/b.db --quiet"},
    {.name = "report", .prepare = RUN "a.db", .command = REPORT},
    {.name = "report again", .prepare = RUN "a.db\n" REPORT " --best 1", .command = REPORT},
    {.name = "export", .prepare = RUN "a.db", .command = "export work/a.db --csv work/csv --quiet"},
    {.name = "embed",
     .command = "embed --weights clip.safetensors --images data/dtd/dtd/images/braided --out work/features.safetensors "
                "--quiet"},
    {.name = "data", .command = "data mini work/mini --threads 1 --quiet", .faults_most = 100, .slow = true},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* That which is tried, and what is in its folder before the command and after it, undisturbed. */
static const struct scenario *scenario;
static struct {
    struct text before, expected, without_caches;
    char *calls;          /* that write, a line each */
    bool caches_may_lack; /* a cache that cannot be written is a warning, and a finished run needs none */
    double seconds;       /* that it takes */
} trial;

/* A number from the environment, or the fallback. */
static long setting(const char *name, long fallback)
{
    const char *given = getenv(name);
    return given != NULL && *given != 0 ? strtol(given, NULL, 10) : fallback;
}

static struct rng draws(void)
{
    return rng_make((uint64_t)setting("MTIL_CRASH_SEED", 1), RNG_TEST, (uint32_t)(scenario - scenarios), 0);
}

static void reset(void)
{
    assert_int_equal(workshop_shell("rm -rf work && cp -r start work"), 0);
}

/* --- What is in it: a paragraph per file, of its name and what has to be the same --- */

static bool ends_with(const char *name, const char *ending)
{
    size_t size = strlen(name), end = strlen(ending);
    return size >= end && strcmp(name + size - end, ending) == 0;
}

static void add_content(const char *path, struct text *state)
{
    struct bytes bytes;
    char hash[DIGEST_SIZE];
    if (ends_with(path, ".db")) {
        struct text health = {0};
        const char *name = path + strlen(workshop.path) + 1;
        rows_query(name, "PRAGMA integrity_check", &health);
        assert_string_equal(health.data, "ok\n");
        text_free(&health);
        rows_read(name, state);
    } else if (!ends_with(path, ".log")) { /* what interrupted runs said comes first there */
        assert_ok(file_read_any(path, FILE_LIMIT, &bytes, &error));
        char *date = strstr((char *)bytes.data, " UTC"); /* of a report */
        if (ends_with(path, ".html") && date != NULL)
            memset(date - 16, ' ', 16);
        digest_bytes(bytes.data, bytes.size, hash);
        text_add(state, "%s\n", hash);
        bytes_free(&bytes);
    }
}

/* SQLite's and our own: whether they are there depends on who looked at the database last. */
static bool is_beside_database(const char *name)
{
    return ends_with(name, ".db-wal") || ends_with(name, ".db-shm") || ends_with(name, ".db-lock");
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void read_state(struct text *state, bool (*wanted)(const char *path))
{
    char *root = path_format("%s/work", workshop.path), *const roots[] = {root, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    assert_non_null(walk);
    for (FTSENT *entry; (entry = fts_read(walk)) != NULL;) {
        bool file = entry->fts_info == FTS_F;
        if (is_beside_database(entry->fts_name))
            continue;
        if ((!file && entry->fts_info != FTS_D) || (wanted != NULL && !(file && wanted(entry->fts_path))))
            continue;
        if (entry->fts_level > 0)
            text_add(state, "\n%s\n", entry->fts_path + strlen(root));
        if (file)
            add_content(entry->fts_path, state);
    }
    text_add(state, "\n");
    fts_close(walk);
    free(root);
}

/* The first line that differs, and the file that it is in. */
static void expect_same(const char *expected, const char *found, const char *after)
{
    size_t line = 0, file = 0;
    for (size_t i = 0; expected[i] != 0 || found[i] != 0; i++) {
        if (expected[i] != found[i])
            fail_msg("%s, %s: expected in %.*s: %.*s, found %.*s", scenario->name, after,
                     (int)strcspn(expected + file, "\n"), expected + file, (int)strcspn(expected + line, "\n"),
                     expected + line, (int)strcspn(found + line, "\n"), found + line);
        if (expected[i] == '\n') {
            file = expected[i + 1] == '\n' ? i + 2 : file;
            line = i + 1;
        }
    }
}

static bool is_no_cache(const char *path)
{
    return strstr(path, "/cache/") == NULL;
}

/* The folder is what the undisturbed command left. */
static void expect_whole(const char *after)
{
    bool may_lack = trial.caches_may_lack && trial.without_caches.size > 0;
    struct text state = {0};
    read_state(&state, may_lack ? is_no_cache : NULL);
    expect_same((may_lack ? &trial.without_caches : &trial.expected)->data, state.data, after);
    text_free(&state);
}

/* Files that are whole as soon as they have their names; a run's database grows, its adapters or weights are replaced. */
static bool is_final(const char *path)
{
    static const char *const growing[] = {
        ".tmp-mtil-",  "/results.db", "/adapters.safetensors", "/weights.safetensors", "/resume.safetensors",
        ".pixels.new", ".log",        "/mini.unfinished"};
    for (size_t i = 0; i < sizeof growing / sizeof *growing; i++)
        if (strstr(path, growing[i]) != NULL)
            return false;
    return true;
}

/* No file under a final name has other contents than it has in the end, or had in the beginning. */
static void expect_nothing_half(const char *after)
{
    struct text state = {0};
    read_state(&state, is_final);
    char *rest = state.data;
    for (char *file = rest; file != NULL && *file != 0; file = rest) {
        rest = strstr(file + 1, "\n\n");
        if (rest != NULL)
            *rest++ = 0;
        if (strstr(trial.expected.data, file) == NULL && strstr(trial.before.data, file) == NULL)
            fail_msg("%s, %s: half written:%s", scenario->name, after, file);
    }
    text_free(&state);
}

/* The command is given again, ends well, and leaves a whole folder. */
static void finish(const char *after)
{
    struct outcome outcome = program_run(scenario->command);
    if (outcome.exit_status != 0)
        fail_msg("%s, %s: does not go on: exit status %d, signal %d: %s", scenario->name, after, outcome.exit_status,
                 outcome.signal, outcome.errors.data);
    outcome_free(&outcome);
    expect_whole(after);
}

/* With a fault of faults.c; what it says of its calls is in *calls, which the caller frees. */
static struct outcome run_with(const char *fault, char **calls)
{
    struct bytes bytes;
    struct error error;
    char *log = path_format("%s/calls.txt", workshop.path);
    setenv("LD_PRELOAD", FAULTS, 1);
    setenv("MTIL_FAULT", fault, 1);
    setenv("MTIL_FAULT_LOG", log, 1);
    struct outcome outcome = program_run(scenario->command);
    unsetenv("LD_PRELOAD");
    *calls = file_read_any(log, FILE_LIMIT, &bytes, &error) == OK ? (char *)bytes.data : xstrdup("");
    remove(log);
    free(log);
    return outcome;
}

static int prepare(void **state)
{
    scenario = *state;
    assert_int_equal(workshop_shell("rm -rf start work && mkdir work"), 0);
    char *commands = xstrdup(scenario->prepare != NULL ? scenario->prepare : ""), *next = commands;
    for (char *command; (command = strsep(&next, "\n")) != NULL;)
        if (*command != 0)
            program_succeeds(command);
    free(commands);
    read_state(&trial.before, NULL);
    assert_int_equal(workshop_shell("mv work start && cp -r start work"), 0);
    double start = clock_seconds();
    struct outcome outcome = run_with("0 count", &trial.calls);
    trial.seconds = clock_seconds() - start;
    assert_int_equal(outcome.exit_status, 0);
    outcome_free(&outcome);
    read_state(&trial.expected, NULL);
    if (strstr(trial.expected.data, "\n/cache/") != NULL)
        read_state(&trial.without_caches, is_no_cache);
    return 0;
}

static int forget(void **state)
{
    text_free(&trial.expected);
    text_free(&trial.without_caches);
    text_free(&trial.before);
    free(trial.calls);
    trial.caches_may_lack = false;
    return 0;
}

/* --- Kills at random instants --- */

static void wait_seconds(double seconds)
{
    time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)((seconds - (double)whole) * 1e9)}, NULL);
}

/* Whether it was killed, and had not ended before. */
static bool run_killed(double delay)
{
    struct process process;
    program_start(&process, scenario->command);
    wait_seconds(delay);
    kill(process.id, SIGKILL);
    struct outcome outcome = program_wait(&process);
    while (wait(NULL) > 0) /* the runs of a sweep: they end with it */
        ;
    bool killed = outcome.signal == SIGKILL;
    if (!killed && outcome.exit_status != 0)
        fail_msg("%s: exit status %d, signal %d: %s", scenario->name, outcome.exit_status, outcome.signal,
                 outcome.errors.data);
    outcome_free(&outcome);
    return killed;
}

/* One time in four it is killed again on its way to the end. False: it ended before it was killed. */
static bool kill_and_go_on(struct rng *rng, uint64_t *draw)
{
    char after[64];
    reset();
    do {
        double delay = trial.seconds * (double)rng_uniform(rng, (*draw)++);
        snprintf(after, sizeof after, "killed after %.4f s", delay);
        if (!run_killed(delay)) {
            expect_whole("ended before it was killed");
            return false;
        }
        expect_nothing_half(after);
    } while (rng_uniform(rng, (*draw)++) < 0.25f);
    finish(after);
    return true;
}

static long kills_of(const struct scenario *one)
{
    return setting("MTIL_CRASH_KILLS", one->slow ? 10 : 20);
}

static void survives_kills(void **state)
{
    long kills = kills_of(scenario), index = scenario - scenarios;
    struct rng rng = draws();
    uint64_t draw = 0;
    for (long i = index; i < kills;)
        i += kill_and_go_on(&rng, &draw) ? SCENARIOS : 0;
}

/* --- Calls that fail --- */

static const char *const modes[] = {"fail", "kill", "full", "short", "interrupted"};

enum { MODES = sizeof modes / sizeof *modes, ANY_CALL = 3 /* the others are of writes */ };

struct point {
    size_t call;
    const char *mode;
};

/* Every call in every way that makes a difference; the caller frees. */
static struct point *list_points(size_t *count)
{
    char *next = trial.calls;
    size_t calls = words_count(next, "\n");
    struct point *points = xcalloc(calls * MODES, sizeof *points);
    assert_int_not_equal(calls, 0);
    *count = 0;
    for (char *line; (line = strsep(&next, "\n")) != NULL && *line != 0;)
        for (size_t i = 0; i < MODES; i++)
            if (i < ANY_CALL || strstr(line, "write ") != NULL)
                points[(*count)++] = (struct point){strtoul(line, NULL, 10), modes[i]};
    return points;
}

static void expect_one_message(const struct outcome *outcome, const char *after)
{
    const char *line = strstr(outcome->errors.data, "mtil: error: ");
    if (outcome->exit_status <= 0 || line == NULL || words_count(outcome->errors.data, "mtil: error:") != 1 ||
        strchr(line, '\n') == NULL || strchr(line, '\n')[1] != 0)
        fail_msg("%s, %s: expected one error, found exit status %d, signal %d: %s", scenario->name, after,
                 outcome->exit_status, outcome->signal, outcome->errors.data);
}

static void try_fault(const struct point *point)
{
    const char *mode = point->mode;
    char fault[64], after[640], *calls;
    reset();
    snprintf(fault, sizeof fault, "%zu %s", point->call, mode);
    trial.caches_may_lack = mode[0] == 'f';
    struct outcome outcome = run_with(fault, &calls);
    snprintf(after, sizeof after, "%s %.500s", mode, calls);
    after[strcspn(after, "\n")] = 0;
    bool cannot_remove = strstr(calls, " unlink ") != NULL; /* what is left then is left to the next */
    if (outcome.exit_status == 0 && !cannot_remove)
        expect_whole(after);
    else if (strcmp(mode, "kill") == 0 && outcome.exit_status != 0)
        assert_int_equal(outcome.signal, SIGKILL);
    else if (outcome.exit_status != 0)
        expect_one_message(&outcome, after);
    expect_nothing_half(after);
    finish(after);
    outcome_free(&outcome);
    free(calls);
}

static void survives_faults(void **state)
{
    size_t count, most = (size_t)setting("MTIL_CRASH_FAULTS", scenario->slow ? 2 : 5);
    struct point *points = list_points(&count);
    if (scenario->faults_most > 0 && (most == 0 || most > scenario->faults_most))
        most = scenario->faults_most;
    size_t tries = most == 0 || most > count ? count : most;
    struct rng rng = draws();
    for (size_t i = 0; i < tries; i++)
        try_fault(&points[tries == count ? i : rng_below(&rng, i, (uint32_t)count)]);
    printf("%s: %zu of %zu faults\n", scenario->name, tries, count);
    free(points);
}

int main(int argc, char **argv)
{
    bool kills = argc == 2 && strcmp(argv[1], "kills") == 0;
    if (!kills && (argc != 2 || strcmp(argv[1], "write_faults") != 0)) {
        fprintf(stderr, "usage: crashes kills|write_faults\n");
        return 1;
    }
    if (kills)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < SCENARIOS && (!kills || i < kills_of(&scenarios[i])); i++)
        test_list(i, (struct CMUnitTest){scenarios[i].name, kills ? survives_kills : survives_faults, prepare, forget,
                                         (void *)&scenarios[i]});
    test_group(workshop_set_up, workshop_tear_down);
    printf("MTIL_CRASH_SEED=%ld\n", setting("MTIL_CRASH_SEED", 1));
    return test_run();
}
