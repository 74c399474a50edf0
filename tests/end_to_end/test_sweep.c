/* Sweeps as a user runs them: plan, run, stop and go on, failures that do not keep others from running, mistakes. */
#include "tests/end_to_end/rows.h"

#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"

#define LONG "training.iterations=40 run.checkpoint_every=5 "

/* Two databases hold what was computed, whatever the order in which runs came to them. */
static void expect_same(const struct workshop *workshop, const char *database, const char *other)
{
    static const char *const computed[] = {
        "SELECT policy, seed, after_task, task, correct, hex(data) FROM runs JOIN evaluations USING (run) "
        "JOIN per_image USING (run, task, after_task) ORDER BY 1, 2, 3, 4",
        "SELECT policy, seed, task, iteration, loss FROM runs JOIN steps USING (run) ORDER BY 1, 2, 3, 4",
    };
    char *path = workshop_path(workshop, database);
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++) {
        struct text rows = {0};
        rows_query(path, computed[i], &rows);
        assert_true(rows.size > 100);
        rows_expect(workshop, other, computed[i], rows.data);
        text_free(&rows);
    }
    free(path);
}

static bool there(const struct workshop *workshop, const char *name)
{
    char *path = workshop_path(workshop, name);
    bool found = file_exists(path);
    free(path);
    return found;
}

TEST(a_plan_writes_nothing)
{
    struct workshop workshop;
    workshop_open(&workshop);
    struct outcome outcome =
        program_ends(&workshop, "sweep tiny.yaml --grid policy=none,most_used seed=1..3 --dry-run --format csv", 0);
    assert_non_null(strstr(outcome.out.data, "policy,runs,finished,to resume,missing"));
    assert_non_null(strstr(outcome.out.data, "none,3,0,0,3"));
    assert_non_null(strstr(outcome.out.data, "most_used,3,0,0,3"));
    assert_non_null(strstr(outcome.errors.data, "6 runs"));
    assert_false(there(&workshop, "results.db"));
    assert_false(there(&workshop, "runs"));
    outcome_free(&outcome);
    workshop_close(&workshop);
}

/* A policy that never merges is one configuration, however often the others merge. */
TEST(what_a_policy_does_not_read_makes_no_runs)
{
    struct workshop workshop;
    workshop_open(&workshop);
    struct outcome outcome = program_ends(
        &workshop, "sweep tiny.yaml --grid policy=none,most_used merge.every=4,8 seed=1..5 --dry-run --format csv", 0);
    assert_non_null(strstr(outcome.out.data, "none,,5,0,0,5"));
    assert_non_null(strstr(outcome.out.data, "most_used,4,5,0,0,5"));
    assert_non_null(strstr(outcome.out.data, "most_used,8,5,0,0,5"));
    assert_int_equal(words_count(outcome.out.data, "\n"), 4);
    assert_int_equal(
        words_count(outcome.errors.data, "merge.every is not read with policy=none: 15 runs instead of 20"), 1);
    outcome_free(&outcome);
    program_succeeds(&workshop, "sweep tiny.yaml --grid policy=none,most_used merge.every=2,4 --quiet");
    rows_expect(&workshop, "results.db", "SELECT policy, count(*) FROM runs GROUP BY 1", "most_used,2\nnone,1\n");
    outcome = program_ends(&workshop, "compare results.db --by policy --metric last", 0);
    assert_null(strstr(outcome.out.data, "not set"));
    assert_int_equal(words_count(outcome.out.data, "not compared"), 0);
    outcome_free(&outcome);
    workshop_close(&workshop);
}

static int cached_files(const struct workshop *workshop, const char *ending)
{
    glob_t found = {0};
    char *pattern = path_format("%s/cache/mtil/*%s", workshop->scratch.path, ending);
    int count = glob(pattern, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    free(pattern);
    return count;
}

/* Every image is decoded once and goes through zero-shot CLIP once, unless the suite wants it otherwise. */
TEST(runs_share_images_and_features)
{
    struct workshop workshop;
    workshop_open(&workshop);
    struct outcome outcome = program_ends(&workshop, "sweep tiny.yaml seed=1..2 run.cache=memory --jobs 1", 0);
    assert_null(strstr(outcome.errors.data, "shared"));
    assert_int_equal(cached_files(&workshop, ".pixels") + cached_files(&workshop, ".features"), 0);
    outcome_free(&outcome);
    outcome = program_ends(&workshop, "sweep tiny.yaml seed=1..2 run.database=shared.db run.folder=other --jobs 1", 0);
    assert_non_null(strstr(outcome.errors.data, "decoded images and zero-shot features are shared"));
    assert_int_equal(cached_files(&workshop, ".features"), 3);
    assert_true(cached_files(&workshop, ".pixels") > 0);
    outcome_free(&outcome);
    expect_same(&workshop, "results.db", "shared.db");
    workshop_close(&workshop);
}

/* A sweep computes what its runs compute one by one; what is finished is not run again. */
TEST(missing_runs_are_run)
{
    static const char again[] = "sweep tiny.yaml --grid policy=none,most_used seed=1..2 --jobs 2";
    struct workshop workshop;
    workshop_open(&workshop);
    program_succeeds(&workshop, "run tiny.yaml merge.policy=none run.seeds=1,2 run.database=single.db run.folder=one");
    program_succeeds(&workshop, "run tiny.yaml run.seeds=1,2 run.database=single.db run.folder=one");
    program_succeeds(&workshop, "run tiny.yaml run.seeds=2");
    struct outcome first = program_ends(&workshop, again, 0);
    assert_int_equal(words_count(first.errors.data, " begins, "), 3);
    assert_non_null(strstr(first.errors.data, "1 finished, 0 to resume, 3 missing"));
    expect_same(&workshop, "results.db", "single.db");
    struct outcome second = program_ends(&workshop, again, 0);
    assert_int_equal(words_count(second.errors.data, " begins, "), 0);
    assert_non_null(strstr(second.errors.data, "4 finished, 0 to resume, 0 missing"));
    assert_string_equal(first.out.data, second.out.data);
    assert_non_null(strstr(second.out.data, "most_used"));
    assert_int_equal(workshop_leftovers(&workshop), 0);
    outcome_free(&first);
    outcome_free(&second);
    workshop_close(&workshop);
}

/* One command runs all rows of a table; what a row computes is what its settings compute. */
TEST(rows_are_run_and_named)
{
    static const char rows[] = "(cat tiny.yaml; printf 'rows:\\n  CLIP: {method.name: zero_shot}\\n"
                               "  MA: {merge.policy: none}\\n  Park: {merge.policy: most_used}\\n') > table.yaml";
    struct workshop workshop;
    workshop_open(&workshop);
    assert_int_equal(workshop_shell(&workshop, rows), 0);
    struct outcome outcome = program_ends(&workshop, "run table.yaml", 2);
    assert_non_null(strstr(outcome.errors.data, "mtil sweep table.yaml"));
    outcome_free(&outcome);
    outcome = program_ends(&workshop, "sweep table.yaml seed=1,2 --dry-run --format csv", 0);
    assert_non_null(strstr(outcome.out.data, "row,runs"));
    assert_non_null(strstr(outcome.errors.data, "3 configurations, 6 runs"));
    outcome_free(&outcome);
    program_succeeds(&workshop, "sweep table.yaml row=CLIP,MA");
    program_succeeds(&workshop, "sweep table.yaml seed=1,2");
    rows_expect(
        &workshop, "results.db",
        "SELECT value, method, policy, seed FROM runs JOIN settings USING (run) WHERE key = 'run.row' ORDER BY 1, 4",
        "CLIP,zero_shot,none,1\nCLIP,zero_shot,none,2\nMA,moe_adapters,none,1\nMA,moe_adapters,none,2\n"
        "Park,moe_adapters,most_used,1\nPark,moe_adapters,most_used,2\n");
    outcome = program_ends(&workshop, "sweep tiny.yaml policy=none,most_used seed=1,2", 0);
    assert_non_null(strstr(outcome.errors.data, "4 finished, 0 to resume, 0 missing"));
    outcome_free(&outcome);
    outcome = program_ends(&workshop, "compare results.db --by row --baseline MA --metric last", 0);
    assert_non_null(strstr(outcome.out.data, "Last: Park is"));
    outcome_free(&outcome);
    workshop_close(&workshop);
}

TEST(stopped_sweeps_go_on)
{
    static const char arguments[] = "sweep tiny.yaml " LONG "seed=1..3 --jobs 2";
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_start(&process, &workshop, &(struct launch){.arguments = arguments});
    free(program_wait_for_file(&process, &workshop, "runs/tiny-*/seed1/resume.safetensors"));
    kill(process.id, SIGINT);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 128 + SIGINT);
    assert_null(strstr(outcome.errors.data, "error:"));
    assert_non_null(strstr(outcome.errors.data, "the same command goes on"));
    assert_string_equal(outcome.out.data, "");
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "SELECT count(*) FROM runs WHERE status = 'running'", "0\n");
    outcome = program_ends(&workshop, arguments, 0);
    assert_true(words_count(outcome.errors.data, " goes on, ") >= 1);
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "SELECT seed, status FROM runs ORDER BY seed",
                "1,finished\n2,finished\n3,finished\n");
    program_succeeds(&workshop, "run tiny.yaml " LONG "run.seeds=1,2,3 run.database=single.db run.folder=one --quiet");
    expect_same(&workshop, "results.db", "single.db");
    workshop_close(&workshop);
}

/* Waits until the run of a seed stands so in the database. */
static void wait_for_status(const struct workshop *workshop, const char *sql, const char *expected)
{
    char *database = workshop_path(workshop, "results.db");
    for (int i = 0; i < 6000; i++) {
        struct text answer = {0};
        rows_query(database, sql, &answer);
        bool reached = strcmp(answer.data, expected) == 0;
        text_free(&answer);
        if (reached) {
            free(database);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("%s: expected %s within a minute", sql, expected);
}

/* Its children do not work on for nobody. */
TEST(killed_sweeps_leave_no_children)
{
    static const char arguments[] = "sweep tiny.yaml " LONG "seed=1";
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_start(&process, &workshop, &(struct launch){.arguments = arguments});
    free(program_wait_for_file(&process, &workshop, "runs/tiny-*/seed1/resume.safetensors"));
    kill(process.id, SIGKILL);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.signal, SIGKILL);
    outcome_free(&outcome);
    wait_for_status(&workshop, "SELECT status FROM runs", "stopped\n");
    program_succeeds(&workshop, arguments);
    rows_expect(&workshop, "results.db", "SELECT status FROM runs", "finished\n");
    workshop_close(&workshop);
}

/* The process that a sweep has started; 0 where the system does not say. */
static pid_t child_of(pid_t parent)
{
    char path[64], line[64];
    pid_t child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fgets(line, sizeof line, file) != NULL)
            child = (pid_t)strtol(line, NULL, 10);
        fclose(file);
    }
    return child;
}

TEST(failing_runs_are_told_and_survived)
{
    static const char arguments[] =
        "sweep tiny.yaml --grid weights=missing.safetensors,clip.safetensors seed=1 --jobs 1";
    struct workshop workshop;
    workshop_open(&workshop);
    struct outcome outcome = program_ends(&workshop, arguments, 1);
    const char *told = strstr(outcome.errors.data, "weights=missing.safetensors seed=1 failed: exit status 1: ");
    assert_non_null(told);
    assert_non_null(strstr(told, "there is no file missing.safetensors"));
    assert_non_null(strstr(outcome.errors.data, "1 of 2 runs failed"));
    assert_non_null(strstr(outcome.out.data, "clip.safetensors"));
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "SELECT count(*) FROM runs WHERE status = 'finished'", "1\n");
    workshop_write_other_weights(&workshop, "missing.safetensors");
    outcome = program_ends(&workshop, arguments, 0);
    assert_non_null(strstr(outcome.errors.data, "1 finished"));
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "SELECT count(*) FROM runs WHERE status = 'finished'", "2\n");
    workshop_close(&workshop);
}

TEST(killed_runs_are_told_and_go_on)
{
    static const char arguments[] = "sweep tiny.yaml " LONG "seed=1..2 --jobs 1";
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_start(&process, &workshop, &(struct launch){.arguments = arguments});
    free(program_wait_for_file(&process, &workshop, "runs/tiny-*/seed1/resume.safetensors"));
    pid_t child = child_of(process.id);
    kill(child > 0 ? child : process.id, SIGKILL);
    struct outcome outcome = program_wait(&process);
    if (child > 0) {
        assert_int_equal(outcome.exit_status, 1);
        assert_non_null(strstr(outcome.errors.data, "seed=1 failed: ended by signal 9 (Killed)"));
        assert_non_null(strstr(outcome.errors.data, "seed=2 finished"));
        assert_non_null(strstr(outcome.errors.data, "1 of 2 runs failed"));
    }
    outcome_free(&outcome);
    outcome = program_ends(&workshop, arguments, 0);
    assert_non_null(strstr(outcome.errors.data, "seed=1 goes on"));
    outcome_free(&outcome);
    program_succeeds(&workshop, "run tiny.yaml " LONG "run.seeds=1,2 run.database=single.db run.folder=one --quiet");
    expect_same(&workshop, "results.db", "single.db");
    workshop_close(&workshop);
}

/* A file limit stands in for the full disk: all runs fail, each is told, nothing is harmed. */
TEST(full_disks_are_told_and_survived)
{
    static const char arguments[] = "sweep tiny.yaml adapter.experts=32 adapter.bottleneck=64 seed=1..2 --jobs 2";
    struct workshop workshop;
    workshop_open(&workshop);
    struct outcome outcome = program_run(&workshop, &(struct launch){.arguments = arguments, .file_limit = 2 << 20});
    assert_int_equal(outcome.exit_status, 1);
    assert_non_null(strstr(outcome.errors.data, "seed=1 failed: exit status 1: "));
    assert_non_null(strstr(outcome.errors.data, "File too large"));
    assert_non_null(strstr(outcome.errors.data, "mtil: error: 2 of 2 runs failed"));
    assert_int_equal(workshop_leftovers(&workshop), 0);
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "PRAGMA integrity_check", "ok\n");
    rows_expect(&workshop, "results.db", "SELECT seed, status FROM runs ORDER BY seed", "1,failed\n2,failed\n");
    program_succeeds(&workshop, arguments);
    rows_expect(&workshop, "results.db", "SELECT seed, status FROM runs ORDER BY seed", "1,finished\n2,finished\n");
    workshop_close(&workshop);
}

static void expect_well(struct process *process)
{
    struct outcome outcome = program_wait(process);
    if (outcome.exit_status != 0)
        fail_msg("exit status %d, signal %d: %s", outcome.exit_status, outcome.signal, outcome.errors.data);
    outcome_free(&outcome);
}

/* At the same time on one database: the same sweep twice and one that shares a run with it. */
TEST(sweeps_beside_each_other_share_the_runs)
{
    static const char *const sweeps[] = {"sweep tiny.yaml " LONG "seed=1..3 --jobs 2",
                                         "sweep tiny.yaml " LONG "seed=1..3 --jobs 2",
                                         "sweep tiny.yaml " LONG "seed=3,4 --jobs 1"};
    enum { SWEEPS = sizeof sweeps / sizeof *sweeps };
    struct workshop workshop;
    struct process process[SWEEPS];
    workshop_open(&workshop);
    for (size_t i = 0; i < SWEEPS; i++)
        program_start(&process[i], &workshop, &(struct launch){.arguments = sweeps[i]});
    for (size_t i = 0; i < SWEEPS; i++)
        expect_well(&process[i]);
    rows_expect(&workshop, "results.db", "SELECT seed, status FROM runs ORDER BY seed",
                "1,finished\n2,finished\n3,finished\n4,finished\n");
    program_succeeds(&workshop, "run tiny.yaml " LONG "run.seeds=1,2,3,4 run.database=single.db run.folder=one");
    expect_same(&workshop, "results.db", "single.db");
    workshop_close(&workshop);
}

static void kill_sweep(struct process *process)
{
    kill(process->id, SIGKILL);
    struct outcome outcome = program_wait(process);
    assert_int_equal(outcome.signal, SIGKILL);
    outcome_free(&outcome);
}

/* While its child is still on its way to the run. */
TEST(sweeps_killed_early_are_taken_over)
{
    static const char arguments[] = "sweep tiny.yaml " LONG "seed=1..2 --jobs 2";
    struct workshop workshop;
    struct process process;
    workshop_open(&workshop);
    program_start(&process, &workshop, &(struct launch){.arguments = arguments});
    free(program_wait_for_file(&process, &workshop, "runs/sweep-tiny-*/logs/0000-seed=1.log"));
    kill_sweep(&process);
    program_succeeds(&workshop, arguments);
    rows_expect(&workshop, "results.db", "SELECT seed, status FROM runs ORDER BY seed", "1,finished\n2,finished\n");
    workshop_close(&workshop);
}

/* Its child is held up and so still has the run when the next sweep looks. The test adopts it: when a stopped process
 * falls to init, its group is orphaned, and the kernel wakes it with SIGHUP and SIGCONT. */
TEST(killed_sweeps_are_taken_over_at_once)
{
    static const char arguments[] = "sweep tiny.yaml training.iterations=300 seed=1";
    struct workshop workshop;
    struct process process;
    char expected[64];
    workshop_open(&workshop);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    program_start(&process, &workshop, &(struct launch){.arguments = arguments});
    free(program_wait_for_file(&process, &workshop, "runs/tiny-*/seed1/resume.safetensors"));
    pid_t child = child_of(process.id);
    kill(child > 0 ? child : process.id, SIGSTOP);
    while (child > 0 && !rows_may_be_written(&workshop, "results.db")) { /* held up in the middle of a commit */
        kill(child, SIGCONT);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        kill(child, SIGSTOP);
    }
    kill_sweep(&process);
    program_start(&process, &workshop, &(struct launch){.arguments = arguments});
    if (child > 0) {
        snprintf(expected, sizeof expected, "wait process %d (seed=1)", (int)child);
        program_wait_for_words(&process, expected);
        kill(child, SIGCONT);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 0);
    assert_int_equal(words_count(outcome.errors.data, "seed=1 goes on, "), 1);
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "SELECT status FROM runs", "finished\n");
    program_succeeds(&workshop, "run tiny.yaml training.iterations=300 run.database=single.db run.folder=one");
    expect_same(&workshop, "results.db", "single.db");
    workshop_close(&workshop);
}

/* Ctrl-C while a sweep waits for a run of somebody else; that one goes on. */
TEST(waiting_can_be_stopped)
{
    static const char run[] = "run tiny.yaml training.iterations=50000";
    static const char sweep[] = "sweep tiny.yaml training.iterations=50000 seed=1";
    struct workshop workshop;
    struct process runs, waits;
    workshop_open(&workshop);
    program_start(&runs, &workshop, &(struct launch){.arguments = run});
    free(program_wait_for_file(&runs, &workshop, "runs/tiny-*/seed1/resume.safetensors"));
    program_start(&waits, &workshop, &(struct launch){.arguments = sweep});
    char expected[64];
    snprintf(expected, sizeof expected, "wait process %d (seed=1)", (int)runs.id);
    program_wait_for_words(&waits, expected);
    kill(waits.id, SIGINT);
    struct outcome outcome = program_wait(&waits);
    assert_int_equal(outcome.exit_status, 128 + SIGINT);
    assert_int_equal(words_count(outcome.errors.data, " begins, "), 0);
    outcome_free(&outcome);
    rows_expect(&workshop, "results.db", "SELECT status FROM runs", "running\n");
    kill(runs.id, SIGTERM);
    outcome = program_wait(&runs);
    assert_int_equal(outcome.exit_status, 128 + SIGTERM);
    outcome_free(&outcome);
    workshop_close(&workshop);
}

TEST(mistakes_come_before_everything)
{
    static const struct {
        const char *arguments, *words[4];
    } cases[] = {
        {"sweep tiny.yaml --grid polcy=none", {"polcy", "policy"}},
        {"sweep tiny.yaml --grid policy=none,most_usd seed=1..5", {"most_usd", "most_used"}},
        {"sweep tiny.yaml --grid merge.evry=1,2", {"evry", "every"}},
        {"sweep tiny.yaml --grid every=0,10", {"every", "expected a whole number"}},
        {"sweep tiny.yaml --grid every=10..5", {"every", "low to high"}},
        {"sweep tiny.yaml --grid seed=1,x", {"run.seeds", "\"x\""}},
        {"sweep tiny.yaml --grid seed=1,01", {"seed 1 is repeated"}},
        {"sweep tiny.yaml --grid label_smoothing=0.1,1e-1", {"compute the same"}},
        {"sweep tiny.yaml --grid threads=1,2", {"compute the same"}},
        {"sweep tiny.yaml --grid policy=none merge.every=4,8", {"merge.every", "no configuration reads it"}},
        {"sweep tiny.yaml --grid seed", {"expected KEY=VALUE"}},
        {"sweep tiny.yaml --grid top_k=2,9", {"top_k=9", "only 4 experts"}},
        {"sweep nothing --grid seed=1", {"nothing", "mtil list suites"}},
        {"sweep tiny.yaml --jobs 0", {"jobs", "from 1"}},
        {"sweep", {"sweep", "expected SUITE"}},
    };
    struct workshop workshop;
    workshop_open(&workshop);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct launch launch = {.arguments = cases[i].arguments};
        program_complains(&workshop, &launch, cases[i].words);
        struct outcome outcome = program_ends(&workshop, cases[i].arguments, 2);
        outcome_free(&outcome);
    }
    assert_false(there(&workshop, "results.db"));
    assert_false(there(&workshop, "runs"));
    workshop_close(&workshop);
}

/* As a full disk or a kill leaves it. */
TEST(a_database_whose_creation_was_cut_short_is_completed)
{
    struct workshop workshop;
    workshop_open(&workshop);
    scratch_write(&workshop.scratch, "results.db", "", 0);
    program_succeeds(&workshop, "sweep tiny.yaml --grid seed=1 training.iterations=2 --quiet");
    rows_expect(&workshop, "results.db", "SELECT status FROM runs", "finished\n");
    workshop_close(&workshop);
}
