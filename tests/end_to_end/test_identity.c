/* What a run is: the contents that it computes from, wherever they lie, and not the names of their files. */
#include "tests/end_to_end/rows.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"

#define RUN "run tiny.yaml --quiet data.order=eurosat,dtd "
#define IN_FIRST RUN "tasks.eurosat.iterations=300 "                  /* long enough to be stopped in the first task */
#define IN_SECOND RUN "run.checkpoints=all tasks.dtd.iterations=300 " /* in the second */
#define TRAINED "data/dtd/dtd/images/braided/braided_0040.jpg"        /* with, in dtd */
#define OTHER "data/dtd/dtd/images/stained/stained_0040.jpg"          /* another image */
#define TRAINED_FIRST "data/eurosat/2750/Forest/Forest_2.jpg"         /* with, in eurosat */
#define OTHER_FIRST "data/eurosat/2750/River/River_2.jpg"

/* --- Words --- */

static void set_up(struct workshop *w)
{
    workshop_open(w);
    workshop_own_data(w, "dtd");
    workshop_own_data(w, "eurosat");
}

/* In the workshop's folder. */
static void shell(const struct workshop *w, const char *command)
{
    char *whole = path_format("cd '%s' && %s", w->scratch.path, command);
    assert_non_null(whole);
    if (system(whole) != 0)
        fail_msg("%s", whole);
    free(whole);
}

static void copy_file(const struct workshop *w, const char *from, const char *to)
{
    struct bytes bytes;
    struct error error;
    char *source = workshop_path(w, from);
    assert_int_equal(file_read(source, FILE_LIMIT, &bytes, &error), OK);
    scratch_write(&w->scratch, to, bytes.data, bytes.size);
    bytes_free(&bytes);
    free(source);
}

static void overwrite_weights(const struct workshop *w)
{
    workshop_write_other_weights(w, "other.safetensors");
    shell(w, "cp clip.safetensors kept.safetensors && cp other.safetensors clip.safetensors");
}

/* Starts a run and stops it as soon as it has written a file. */
static void stop_at(const struct workshop *w, const char *arguments, const char *pattern)
{
    struct process process;
    program_start(&process, w, &(struct launch){.arguments = arguments});
    free(program_wait_for_file(&process, w, pattern));
    kill(process.id, SIGINT);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 128 + SIGINT);
    outcome_free(&outcome);
}

#define ZERO_SHOT_DONE "runs/*/seed1/resume.safetensors"
#define FIRST_TASK_DONE "runs/*/seed1/task00.adapters.safetensors"

static void refused(const struct workshop *w, const char *arguments, const char *const *words)
{
    struct text before = {0}, after = {0};
    rows_read(scratch_file(&w->scratch, "results.db"), &before);
    program_fails(w, &(struct launch){.arguments = arguments}, words);
    rows_read(scratch_file(&w->scratch, "results.db"), &after);
    assert_string_equal(after.data, before.data);
    rows_expect(w, "results.db", "SELECT count(*), max(status) FROM runs", "1,stopped\n");
    text_free(&before);
    text_free(&after);
}

static void execute(const struct workshop *w, const char *sql)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(scratch_file(&w->scratch, "results.db"), &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(database);
}

/* --- Between stop and resume --- */

TEST(overwritten_weights_are_refused_until_they_are_back)
{
    struct workshop w;
    set_up(&w);
    stop_at(&w, IN_FIRST, ZERO_SHOT_DONE);
    overwrite_weights(&w);
    refused(&w, IN_FIRST,
            (const char *const[]){"model.weights", "clip.safetensors", "run 1 of results.db", "expected the digest",
                                  "mtil runs delete results.db 1", "run.database", NULL});
    rows_expect(&w, "results.db", "SELECT count(*) FROM sessions", "1\n");
    shell(&w, "cp kept.safetensors clip.safetensors");
    program_succeeds(&w, IN_FIRST);
    rows_expect(&w, "results.db", "SELECT count(*), max(status) FROM runs", "1,finished\n");
    rows_expect(&w, "results.db", "SELECT count(*) FROM sessions", "2\n");
    workshop_close(&w);
}

TEST(replaced_test_images_are_refused)
{
    struct workshop w;
    set_up(&w);
    stop_at(&w, IN_FIRST, ZERO_SHOT_DONE);
    shell(&w, "find data/dtd -name '*.jpg' ! -name stained_0040.jpg -exec cp " OTHER " {} ';'");
    refused(&w, IN_FIRST, (const char *const[]){"test images of dtd", "/data/dtd", "mtil runs delete", NULL});
    workshop_close(&w);
}

TEST(other_class_names_are_refused)
{
    struct workshop w;
    set_up(&w);
    stop_at(&w, IN_FIRST, ZERO_SHOT_DONE);
    scratch_write_text(&w.scratch, "data/dtd/templates.txt", "a drawing of {}.\n");
    refused(&w, IN_FIRST, (const char *const[]){"class names and templates of dtd", NULL});
    workshop_close(&w);
}

TEST(training_images_of_a_finished_task_are_refused)
{
    struct workshop w;
    set_up(&w);
    stop_at(&w, IN_SECOND, FIRST_TASK_DONE);
    copy_file(&w, OTHER_FIRST, TRAINED_FIRST);
    refused(&w, IN_SECOND,
            (const char *const[]){"training images of eurosat", "trained on them", "start it again", "mtil runs delete",
                                  NULL});
    program_succeeds(&w, "runs delete results.db 1 --yes --quiet");
    program_succeeds(&w, RUN);
    rows_expect(&w, "results.db", "SELECT count(*), max(status) FROM runs", "1,finished\n");
    workshop_close(&w);
}

/* The rows that follow are those of a run that never saw other images. */
TEST(mended_images_of_a_later_task_are_gone_on_with)
{
    struct workshop w;
    struct text expected = {0}, found = {0};
    set_up(&w);
    stop_at(&w, IN_FIRST, ZERO_SHOT_DONE);
    copy_file(&w, OTHER, TRAINED);
    struct outcome outcome = program_ends(&w, IN_FIRST, 0);
    assert_non_null(strstr(outcome.errors.data, "warning: the training images of dtd"));
    assert_int_equal(words_count(outcome.errors.data, "warning"), 1);
    outcome_free(&outcome);
    assert_null(workshop_find(&w, "runs/*/seed1/resume.safetensors"));
    program_succeeds(&w, IN_FIRST "run.database=undisturbed.db run.folder=undisturbed");
    rows_read(scratch_file(&w.scratch, "results.db"), &found);
    rows_read(scratch_file(&w.scratch, "undisturbed.db"), &expected);
    assert_string_equal(found.data, expected.data);
    text_free(&found);
    text_free(&expected);
    program_succeeds(&w, IN_FIRST); /* found again by what it is now */
    rows_expect(&w, "results.db", "SELECT count(*), max(status) FROM runs", "1,finished\n");
    workshop_close(&w);
}

/* As if it had been killed after the resume file got the new contents' hash and before the database did. */
TEST(a_kill_in_between_is_gone_on_from)
{
    struct workshop w;
    set_up(&w);
    stop_at(&w, IN_FIRST, ZERO_SHOT_DONE);
    execute(&w, "UPDATE runs SET suite_hash = 'older'; UPDATE inputs SET digest = 'older' WHERE task = 1 AND kind = "
                "'train'");
    struct outcome outcome = program_ends(&w, "run tiny.yaml data.order=eurosat,dtd tasks.eurosat.iterations=300", 0);
    assert_non_null(strstr(outcome.errors.data, "resuming task 1 of 2"));
    outcome_free(&outcome);
    rows_expect(&w, "results.db", "SELECT status, length(suite_hash) FROM runs", "finished,64\n");
    workshop_close(&w);
}

/* Nothing that is kept has read the file. */
TEST(a_run_without_a_resume_file_begins_anew)
{
    struct workshop w;
    set_up(&w);
    stop_at(&w, IN_FIRST, ZERO_SHOT_DONE);
    shell(&w, "rm runs/*/seed1/resume.safetensors");
    overwrite_weights(&w);
    program_succeeds(&w, IN_FIRST);
    rows_expect(&w, "results.db", "SELECT run, status FROM runs", "1,finished\n");
    rows_expect(&w, "results.db", "SELECT count(DISTINCT digest), count(*) FROM inputs WHERE kind = 'weights'",
                "1,1\n");
    workshop_close(&w);
}

/* --- While a run goes on --- */

TEST(images_replaced_meanwhile_stop_the_run)
{
    struct workshop w;
    struct process process;
    set_up(&w);
    program_start(&process, &w, &(struct launch){.arguments = IN_FIRST});
    free(program_wait_for_file(&process, &w, ZERO_SHOT_DONE));
    kill(process.id, SIGSTOP);
    copy_file(&w, OTHER_FIRST, TRAINED_FIRST);
    kill(process.id, SIGCONT);
    struct outcome outcome = program_wait(&process);
    assert_int_equal(outcome.exit_status, 1);
    assert_non_null(strstr(outcome.errors.data, "the training images of eurosat below data changed"));
    outcome_free(&outcome);
    rows_expect(&w, "results.db", "SELECT status, (SELECT max(after_task) FROM evaluations) FROM runs", "failed,-1\n");
    workshop_close(&w);
}

/* --- Finished runs --- */

TEST(other_contents_are_another_run)
{
    struct workshop w;
    set_up(&w);
    struct outcome first = program_ends(&w, RUN, 0);
    overwrite_weights(&w);
    struct outcome second = program_ends(&w, RUN, 0);
    assert_string_not_equal(first.out.data, second.out.data);
    rows_expect(
        &w, "results.db",
        "SELECT count(*), count(DISTINCT suite_hash), count(DISTINCT settings_hash), count(DISTINCT folder) FROM "
        "runs",
        "2,2,1,2\n");
    outcome_free(&first);
    first = program_ends(&w, "compare results.db --by model.weights --quiet", 0);
    assert_non_null(strstr(first.out.data, "clip.safetensors (")); /* the second of two groups */
    outcome_free(&first);
    outcome_free(&second);
    workshop_close(&w);
}

TEST(the_same_contents_elsewhere_are_the_same_run)
{
    static const char *const others[] = {"model.weights=elsewhere.safetensors",
                                         "model.weights=linked.safetensors",
                                         "data.root=copied",
                                         "data.root=linked",
                                         "tasks.dtd.root=copied",
                                         "model.vocabulary=copied/words.txt"};
    struct workshop w;
    set_up(&w);
    program_succeeds(&w, RUN);
    shell(&w, "cp clip.safetensors elsewhere.safetensors && ln -s clip.safetensors linked.safetensors && "
              "cp -rL data copied && ln -s data linked && cp vocabulary.txt copied/words.txt");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char arguments[256];
        snprintf(arguments, sizeof arguments, "run tiny.yaml data.order=eurosat,dtd %s", others[i]);
        struct outcome outcome = program_ends(&w, arguments, 0);
        assert_non_null(strstr(outcome.errors.data, "seed 1 had already finished"));
        outcome_free(&outcome);
    }
    shell(&w, "mv data moved");
    program_succeeds(&w, RUN "data.root=moved");
    rows_expect(&w, "results.db", "SELECT count(*) FROM runs", "1\n");
    rows_expect(&w, "results.db", "SELECT count(*) FROM sessions", "1\n");
    workshop_close(&w);
}

/* --- Those who look for runs --- */

TEST(sweeps_know_runs_by_their_contents)
{
    struct workshop w;
    set_up(&w);
    program_succeeds(&w, "run tiny.yaml --quiet data.order=dtd merge.policy=none");
    struct outcome outcome =
        program_ends(&w, "sweep tiny.yaml --grid policy=none,most_used data.order=dtd --dry-run", 0);
    assert_non_null(strstr(outcome.errors.data, "2 runs: 1 finished, 0 to resume, 1 missing"));
    outcome_free(&outcome);
    overwrite_weights(&w);
    outcome = program_ends(&w, "sweep tiny.yaml --grid policy=none,most_used data.order=dtd --dry-run", 0);
    assert_non_null(strstr(outcome.errors.data, "2 runs: 0 finished, 0 to resume, 2 missing"));
    outcome_free(&outcome);
    program_fails(&w,
                  &(struct launch){.arguments =
                                       "sweep tiny.yaml --grid model.weights=clip.safetensors,other.safetensors "
                                       "data.order=dtd --dry-run --quiet"},
                  (const char *const[]){"compute the same", "other.safetensors", NULL});
    workshop_close(&w);
}

TEST(joined_databases_keep_inputs_and_sessions)
{
    struct workshop w;
    set_up(&w);
    program_succeeds(&w, "run tiny.yaml --quiet data.order=dtd");
    program_succeeds(&w, "run tiny.yaml --quiet data.order=dtd run.database=again.db run.folder=again");
    overwrite_weights(&w);
    program_succeeds(&w, "run tiny.yaml --quiet data.order=dtd run.database=other.db run.folder=other");
    program_succeeds(&w, "merge-db all.db results.db again.db other.db --quiet");
    rows_expect(&w, "all.db", "SELECT run, count(*), count(DISTINCT kind) FROM inputs GROUP BY run", "1,6,6\n2,6,6\n");
    rows_expect(&w, "all.db", "SELECT session, run FROM sessions", "1,1\n2,2\n");
    workshop_close(&w);
}
