/* mtil runs delete, mtil verify and mtil rerun on runs of the program itself. */
#include "tests/end_to_end/rows.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN "run tiny.yaml --quiet training.iterations=4 "

static void shell(const struct workshop *w, const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "cd '%s' && %s", w->scratch.path, command);
    if (system(line) != 0)
        fail_msg("%s", command);
}

static void execute(const struct workshop *w, const char *sql)
{
    sqlite3 *database;
    char *path = workshop_path(w, "results.db");
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    free(path);
}

static void expect_there(const struct workshop *w, const char *pattern, bool there)
{
    char *path = workshop_find(w, pattern);
    if ((path != NULL) != there)
        fail_msg("%s: expected it to be %s", pattern, there ? "there" : "gone");
    free(path);
}

TEST(rows_and_files_of_a_run_go)
{
    struct workshop w;
    struct text before = {0}, after = {0};
    workshop_open(&w);
    program_succeeds(&w, RUN "run.seeds=1,2");
    program_succeeds(&w, "verify results.db");
    char *path = workshop_path(&w, "results.db");
    rows_read(path, &before);
    program_complains(&w, &(struct launch){.arguments = "runs delete results.db 2"},
                      (const char *const[]){"asks for confirmation", "--yes", NULL});
    program_complains(&w, &(struct launch){.arguments = "runs delete results.db 7 --yes"},
                      (const char *const[]){"there is no run 7", NULL});
    program_complains(&w, &(struct launch){.arguments = "runs delete results.db 2-x --yes"},
                      (const char *const[]){"2-x", NULL});
    program_complains(&w, &(struct launch){.arguments = "runs delete nothing.db 2 --yes"},
                      (const char *const[]){"no such file", NULL});
    expect_there(&w, "nothing.db", false);
    shell(&w, "cd runs/*/seed2 && echo mine >notes.txt && ln -s ../../../clip.safetensors link.safetensors");
    program_succeeds(&w, "runs delete results.db 2,9 --yes");
    expect_there(&w, "runs/*/seed2/adapters.safetensors", false);
    expect_there(&w, "runs/*/seed2/notes.txt", true);
    expect_there(&w, "runs/*/seed2/link.safetensors", true);
    expect_there(&w, "clip.safetensors", true);
    expect_there(&w, "runs/*/seed1/adapters.safetensors", true);
    rows_expect(&w, "results.db", "SELECT run FROM runs", "1\n");
    rows_expect(&w, "results.db", "SELECT count(*) FROM steps WHERE run = 2", "0\n");
    program_succeeds(&w, "verify results.db");
    program_succeeds(&w, RUN "run.seeds=1,2"); /* it starts anew, and becomes what it was */
    rows_read(path, &after);
    assert_string_equal(after.data, before.data);
    shell(&w, "rm runs/*/seed2/notes.txt runs/*/seed2/link.safetensors");
    program_succeeds(&w, "runs delete results.db 1-2 --yes");
    expect_there(&w, "runs/*", false);
    rows_expect(&w, "results.db", "SELECT count(*) FROM runs", "0\n");
    text_free(&before);
    text_free(&after);
    free(path);
    workshop_close(&w);
}

TEST(a_run_that_goes_on_stays)
{
    struct workshop w;
    struct process process;
    workshop_open(&w);
    program_start(&process, &w, &(struct launch){.arguments = "run tiny.yaml --quiet training.iterations=100000"});
    free(program_wait_for_file(&process, &w, "runs/*/seed1/resume.safetensors"));
    program_complains(&w, &(struct launch){.arguments = "runs delete results.db 1 --yes"},
                      (const char *const[]){"run 1 is going on", NULL});
    kill(process.id, SIGKILL);
    struct outcome outcome = program_wait(&process);
    outcome_free(&outcome);
    program_succeeds(&w, "runs delete results.db 1 --yes");
    expect_there(&w, "runs/*", false);
    workshop_close(&w);
}

/* A database from elsewhere names folders as it likes. */
TEST(other_folders_are_not_touched)
{
    struct workshop w;
    workshop_open(&w);
    program_succeeds(&w, RUN);
    shell(&w, "mkdir -p mine/seed1 && cp clip.safetensors mine/seed1");
    execute(&w, "UPDATE runs SET folder = 'mine/seed1'");
    program_complains(&w, &(struct launch){.arguments = "runs delete results.db 1 --yes"},
                      (const char *const[]){"mine/seed1", "expected the folder of a run", NULL});
    expect_there(&w, "mine/seed1/clip.safetensors", true);
    rows_expect(&w, "results.db", "SELECT count(*) FROM runs", "1\n");
    workshop_close(&w);
}

TEST(what_does_not_hold_is_named)
{
    struct workshop w;
    workshop_open(&w);
    program_succeeds(&w, RUN);
    shell(&w, "echo x >>\"$(echo runs/*/seed1/adapters.safetensors)\"");
    struct outcome outcome = program_ends(&w, "verify results.db --format csv", 1);
    assert_non_null(strstr(outcome.out.data, "1,files,"));
    assert_non_null(strstr(outcome.errors.data, "results.db: 1 thing does not hold"));
    outcome_free(&outcome);
    shell(&w, "rm runs/*/seed1/adapters.safetensors && chmod a-w results.db .");
    outcome = program_ends(&w, "verify results.db 1", 0);
    assert_non_null(strstr(outcome.errors.data, "1 file of its runs cannot be found any more"));
    outcome_free(&outcome);
    shell(&w, "chmod u+w .");
    workshop_close(&w);
}

/* A line per kind, and a few of each. */
TEST(many_faults_are_counted)
{
    struct workshop w;
    workshop_open(&w);
    program_succeeds(&w, RUN);
    program_succeeds(&w, "verify");
    program_succeeds(&w, "verify 1");
    program_succeeds(&w, "report --out page");
    execute(&w, "UPDATE evaluations SET images = images + 1");
    struct outcome outcome = program_ends(&w, "verify 1", 1), all = program_ends(&w, "verify --verbose", 1),
                   rows = program_ends(&w, "verify results.db --format csv", 1);
    assert_non_null(strstr(outcome.out.data, "what"));
    assert_true(strstr(outcome.out.data, "faults") < strstr(outcome.out.data, "expected"));
    assert_int_equal(words_count(outcome.out.data, "evaluations"), 1 + 3);
    assert_non_null(strstr(outcome.errors.data, "--verbose shows all"));
    assert_true(words_count(all.out.data, "evaluations") > 1 + 3);
    assert_int_equal(words_count(all.out.data, "after task"), words_count(rows.out.data, "after task"));
    outcome_free(&outcome);
    outcome_free(&all);
    outcome_free(&rows);
    workshop_close(&w);
}

TEST(a_run_is_repeated_to_the_bit)
{
    struct workshop w;
    workshop_open(&w);
    program_succeeds(&w, RUN "run.seeds=3");
    struct outcome outcome = program_ends(&w, "rerun results.db 1 --quiet --format csv", 0);
    assert_non_null(strstr(outcome.out.data, "per_image,12,12,the same"));
    outcome_free(&outcome);
    rows_expect(&w, "results.db", "SELECT count(*) FROM runs", "1\n");
    /* what earlier versions did not keep */
    execute(&w, "DELETE FROM test_labels; DELETE FROM merge_effects; DELETE FROM class_experts");
    outcome = program_ends(&w, "rerun results.db 1 --quiet", 0);
    assert_int_equal(words_count(outcome.out.data, "kept in one of them alone"), 3);
    outcome_free(&outcome);
    execute(&w, "UPDATE steps SET loss = loss + 1e-12 WHERE task = 1 AND iteration = 4; "
                "UPDATE runs SET program_version = '0.0.1'");
    outcome = program_ends(&w, "rerun results.db 1 --out again.db run.threads=2", 1);
    assert_non_null(strstr(outcome.out.data, "steps (task 1, iteration 4): loss "));
    assert_int_equal(words_count(outcome.out.data, "the first and"), 1);
    assert_non_null(strstr(outcome.errors.data, "program: 0.0.1 then"));
    assert_non_null(strstr(outcome.errors.data, "differ from those of its repetition"));
    outcome_free(&outcome);
    rows_expect(&w, "again.db", "SELECT seed, status FROM runs", "3,finished\n");
    program_complains(&w, &(struct launch){.arguments = "rerun results.db 1 --quiet --out again.db"},
                      (const char *const[]){"again.db", "already has this run", NULL});
    program_complains(&w, &(struct launch){.arguments = "rerun results.db 1 training.iterations=5"},
                      (const char *const[]){"change what is computed", NULL});
    shell(&w, "rm clip.safetensors");
    program_complains(&w, &(struct launch){.arguments = "rerun results.db 1 --quiet"},
                      (const char *const[]){"clip.safetensors", NULL});
    execute(&w, "UPDATE runs SET status = 'stopped'");
    program_complains(&w, &(struct launch){.arguments = "rerun results.db 1 --quiet"},
                      (const char *const[]){"expected a finished run", NULL});
    workshop_close(&w);
}

/* With plain C for the unit, which any machine has. */
TEST(runs_in_bf16_have_the_same_bits_on_any_threads)
{
    struct workshop w;
    workshop_open(&w);
    const char *script = "export MTIL_ISA=portable; for n in 1 2; do \"$MTIL\" " RUN
                         "--precision bf16 run.threads=$n run.folder=$n run.database=$n.db >out.txt || exit 1; done; "
                         "cmp 1/*/seed1/adapters.safetensors 2/*/seed1/adapters.safetensors";
    assert_int_equal(workshop_shell(&w, script), 0);
    rows_expect(&w, "1.db", "SELECT backend, precision, status FROM runs", "cpu,bf16,finished\n");
    workshop_close(&w);
}

/* In the precision that the run has. */
TEST(a_dry_run_estimates_one_precision)
{
    struct workshop w;
    workshop_open(&w);
    struct outcome outcome = program_ends(&w, "run tiny.yaml --dry-run --quiet --precision f32", 0);
    assert_int_equal(words_count(outcome.out.data, "# time "), 1);
    assert_int_equal(words_count(outcome.out.data, "# memory "), 1);
    assert_int_equal(words_count(outcome.out.data, " in f32, at "), 1);
    assert_int_equal(words_count(outcome.out.data, "bf16"), 0);
    outcome_free(&outcome);
    workshop_close(&w);
}

/* They can be given to mtil predict. */
TEST(a_run_and_a_sweep_say_where_the_adapters_lie)
{
    struct workshop w;
    workshop_open(&w);
    const char *script = "folder=$(\"$MTIL\" run tiny.yaml 2>&1 >out.txt | sed -n 's/^mtil: the adapters lie in //p'); "
                         "test -f \"$folder/adapters.safetensors\" || exit 1; "
                         "\"$MTIL\" sweep tiny.yaml seed=1,2 2>&1 >out.txt | grep -q 'lie below runs$'";
    assert_int_equal(workshop_shell(&w, script), 0);
    struct outcome outcome = program_ends(&w, "run tiny.yaml method.name=zero_shot", 0);
    assert_int_equal(words_count(outcome.errors.data, " lie in "), 0);
    outcome_free(&outcome);
    workshop_close(&w);
}

/* What was reused is a matter of the program's. */
TEST(a_run_speaks_of_reused_predictions_only_when_asked)
{
    struct workshop w;
    workshop_open(&w);
    struct outcome outcome = program_ends(&w, "run tiny.yaml --verbose", 0);
    assert_int_equal(words_count(outcome.errors.data, "predictions after training"), 1);
    outcome_free(&outcome);
    outcome = program_ends(&w, "run tiny.yaml seed=2", 0);
    assert_int_equal(words_count(outcome.errors.data, "predictions after training"), 0);
    outcome_free(&outcome);
    workshop_close(&w);
}

/* A sanitizer reserves terabytes. */
TEST(a_run_reserves_addresses_for_what_it_needs)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip();
#else
    struct workshop w;
    (void)state;
    workshop_open(&w);
    assert_int_equal(workshop_shell(&w, "ulimit -v 1000000; \"$MTIL\" " RUN "--backend cpu >out.txt"), 0);
    workshop_close(&w);
#endif
}
