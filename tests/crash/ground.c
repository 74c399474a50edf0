#include "tests/crash/ground.h"

#include <fts.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/digest.h"
#include "core/file.h"
#include "tests/end_to_end/rows.h"

#define SMALL "--quiet data.order=mnist,eurosat training.iterations=3 run.checkpoint_every=2 selector.iterations=3 "
#define RUN "run tiny.yaml " SMALL "run.folder=work/runs run.database=work/"
#define REPORT "report work/a.db --out work/report --figures=false --quiet"
#define TWO_RUNS RUN "a.db run.seeds=1\n" RUN "b.db run.seeds=2"

const struct scenario scenarios[] = {
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
const size_t scenario_count = sizeof scenarios / sizeof *scenarios;
struct workshop ground;

long crash_setting(const char *name, long fallback)
{
    const char *given = getenv(name);
    return given != NULL && *given != 0 ? strtol(given, NULL, 10) : fallback;
}

long crash_tries(const struct scenario *scenario, const char *name, long fallback)
{
    return crash_setting(name, scenario->slow ? fallback / 2 : fallback);
}

/* --- The folder --- */

void trial_reset(void)
{
    assert_int_equal(workshop_shell(&ground, "rm -rf work && cp -r start work"), 0);
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
        rows_query(path, "PRAGMA integrity_check", &health);
        assert_string_equal(health.data, "ok\n");
        text_free(&health);
        rows_read(path, state);
    } else if (!ends_with(path, ".log")) { /* what interrupted runs said comes first there */
        assert_ok(file_read(path, FILE_LIMIT, &bytes, &error));
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
    char *root = workshop_path(&ground, "work"), *const roots[] = {root, NULL};
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
static void expect_same(const struct trial *trial, const char *expected, const char *found, const char *after)
{
    size_t line = 0, file = 0;
    for (size_t i = 0; expected[i] != 0 || found[i] != 0; i++) {
        if (expected[i] != found[i])
            fail_msg("%s, %s: expected in %.*s: %.*s, found %.*s", trial->scenario->name, after,
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

void trial_expect_whole(const struct trial *trial, const char *after)
{
    struct text state = {0};
    read_state(&state, trial->caches_may_lack ? is_no_cache : NULL);
    expect_same(trial, (trial->caches_may_lack ? &trial->without_caches : &trial->expected)->data, state.data, after);
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

void trial_expect_nothing_half(const struct trial *trial, const char *after)
{
    struct text state = {0};
    read_state(&state, is_final);
    char *rest = state.data;
    for (char *file = rest; file != NULL && *file != 0; file = rest) {
        rest = strstr(file + 1, "\n\n");
        if (rest != NULL)
            *rest++ = 0;
        if (strstr(trial->expected.data, file) == NULL && strstr(trial->before.data, file) == NULL)
            fail_msg("%s, %s: half written:%s", trial->scenario->name, after, file);
    }
    text_free(&state);
}

/* --- The command --- */

void trial_finish(const struct trial *trial, const char *after)
{
    struct outcome outcome = program_run(&ground, &(struct launch){.arguments = trial->scenario->command});
    if (outcome.exit_status != 0)
        fail_msg("%s, %s: does not go on: exit status %d, signal %d: %s", trial->scenario->name, after,
                 outcome.exit_status, outcome.signal, outcome.errors.data);
    outcome_free(&outcome);
    trial_expect_whole(trial, after);
}

static void prepare(struct trial *trial)
{
    assert_int_equal(workshop_shell(&ground, "rm -rf start work && mkdir work"), 0);
    char *commands = xstrdup(trial->scenario->prepare != NULL ? trial->scenario->prepare : ""), *next = commands;
    for (char *command; (command = strsep(&next, "\n")) != NULL;)
        if (*command != 0)
            program_succeeds(&ground, command);
    read_state(&trial->before, NULL);
    assert_int_equal(workshop_shell(&ground, "mv work start"), 0);
    free(commands);
}

void trial_open(struct trial *trial, const struct scenario *scenario)
{
    *trial = (struct trial){.scenario = scenario};
    prepare(trial);
    trial_reset();
    double start = clock_seconds();
    program_succeeds(&ground, scenario->command);
    trial->seconds = clock_seconds() - start;
    read_state(&trial->expected, NULL);
    read_state(&trial->without_caches, is_no_cache);
}

void trial_close(struct trial *trial)
{
    text_free(&trial->expected);
    text_free(&trial->without_caches);
    text_free(&trial->before);
}

int crash_main(const char *group, CMUnitTestFunction survives)
{
    struct CMUnitTest *tests = xcalloc(scenario_count, sizeof *tests);
    for (size_t i = 0; i < scenario_count; i++)
        tests[i] = (struct CMUnitTest){
            .name = scenarios[i].name, .test_func = survives, .initial_state = (void *)&scenarios[i]};
    printf("MTIL_CRASH_SEED=%ld\n", crash_setting("MTIL_CRASH_SEED", 1));
    workshop_open(&ground);
    int failed = _cmocka_run_group_tests(group, tests, scenario_count, NULL, NULL);
    workshop_close(&ground);
    free(tests);
    return failed;
}
