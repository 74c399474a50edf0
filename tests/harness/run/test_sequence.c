#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/digest.h"
#include "core/file.h"
#include "harness/run/rates.h"
#include "harness/run/run.h"
#include "harness/run/sequence.h"
#include "results/store/database.h"
#include "tests/harness/small_run.h"
#include "tests/results/matrix.h"

static const char *const methods[] = {"method.name=moe_adapters", "method.name=continual_ft", "method.name=finetune"};

/* One call of the program: opens, runs, closes. */
static status run_once(struct small_run *run, const char *method, const char *database, struct backend_spy *spy,
                       struct sequence *sequence)
{
    struct store *store;
    small_run_reopen(run, 1, WORDS(method, "run.log_every=2"));
    if (spy != NULL)
        small_run_watch(run, spy);
    const struct stop *stop = spy != NULL ? spy->stop : NULL;
    must(store_open_stoppable(&store, small_run_file(run, database), STORE_WRITE, stop,
                              &error)); /* as `mtil run` does */
    *sequence = (struct sequence){.run = run->experiment, .store = store, .stop = stop};
    status result = sequence_run(sequence, &error);
    store_close(store);
    return result;
}

/* The run's accuracies; the caller frees. */
static struct run_matrix stored_matrix(struct small_run *run, const char *database)
{
    struct store *store;
    struct run_matrix matrix;
    must(store_open(&store, small_run_file(run, database), STORE_READ, &error));
    must(run_matrix_read(store, 1, &matrix, &error));
    store_close(store);
    return matrix;
}

static void expect_same_matrix(struct small_run *run, const char *a, const char *b)
{
    struct run_matrix x = stored_matrix(run, a), y = stored_matrix(run, b);
    for (size_t i = 0; i < SMALL_RUN_TASKS * SMALL_RUN_TASKS; i++) {
        double p = x.matrix.accuracy[i], q = y.matrix.accuracy[i];
        if (p != q && !(isnan(p) && isnan(q)))
            fail_msg("cell %zu: %g in %s, %g in %s", i, p, a, q, b);
    }
    run_matrix_free(&x);
    run_matrix_free(&y);
}

static char *file_in_folder(const struct small_run *run, const char *name)
{
    char *folder = run_folder(run->experiment), *path = path_format("%s/%s", folder, name);
    assert_non_null(path);
    free(folder);
    return path;
}

static struct bytes trained_weights(const struct small_run *run)
{
    char *path = file_in_folder(run, run->experiment->model.groups & GROUP_ADAPTERS ? "adapters.safetensors"
                                                                                    : "weights.safetensors");
    struct bytes bytes;
    must(file_read(path, FILE_LIMIT, &bytes, &error));
    free(path);
    return bytes;
}

static void remove_folder_file(const struct small_run *run, const char *name)
{
    char *path = file_in_folder(run, name);
    unlink(path);
    free(path);
}

RUN_TEST(fills_the_matrix_and_is_then_only_shown, NULL)
{
    struct sequence sequence;
    must(run_once(run, methods[0], "a.db", NULL, &sequence));
    assert_false(sequence.finished_before);
    assert_int_equal(sequence.iterations, 3 * 6);
    struct run_matrix matrix = stored_matrix(run, "a.db");
    for (size_t i = 0; i < SMALL_RUN_TASKS * SMALL_RUN_TASKS; i++)
        assert_true(matrix.matrix.accuracy[i] >= 0 && matrix.matrix.accuracy[i] <= 100);
    run_matrix_free(&matrix);
    char *resume = file_in_folder(run, "resume.safetensors");
    assert_false(file_exists(resume));
    free(resume);
    struct backend_spy spy = {0};
    must(run_once(run, methods[0], "a.db", &spy, &sequence));
    assert_true(sequence.finished_before);
    assert_true(spy.updates == 0 && spy.encodings == 0);
}

static void expect_number(const struct small_run *run, const char *database, const char *sql, int64_t expected)
{
    struct database *opened;
    int64_t found;
    must(database_open(&opened, small_run_file(run, database), STORE_READ, NULL, &error));
    must(database_integer(opened, sql, &found, &error));
    assert_int_equal(found, expected);
    database_close(opened);
}

/* The digest in the results is that of the file: sha256sum prints the same. */
RUN_TEST(files_are_recorded_with_their_digest, NULL)
{
    struct sequence sequence;
    char digest[DIGEST_SIZE];
    must(run_once(run, methods[0], "a.db", NULL, &sequence));
    char *path = file_in_folder(run, "adapters.safetensors");
    must(digest_file(path, digest, &error));
    char *sql = path_format("SELECT count(*) FROM artifacts WHERE path = '%s' AND digest = '%s'", path, digest);
    expect_number(run, "a.db", sql, 1);
    free(sql);
    free(path);
}

/* Stopped at some optimizer step or batch of predictions: it goes on to the same matrix and weights. */
static void goes_on_from(struct small_run *run, const char *method, size_t stop_at_update, size_t stop_at_prediction,
                         const struct bytes *expected)
{
    struct sequence sequence;
    struct stop stop = {0};
    struct backend_spy spy = {
        .stop = &stop, .stop_at_update = stop_at_update, .stop_at_prediction = stop_at_prediction};
    status result = run_once(run, method, "stopped.db", &spy, &sequence);
    if (stop.signal == 0)
        fail_msg("%s: there is no update %zu or prediction %zu", method, stop_at_update, stop_at_prediction);
    if (result == ERROR_STOPPED)
        result = run_once(run, method, "stopped.db", NULL, &sequence);
    must(result);
    expect_same_matrix(run, "whole.db", "stopped.db");
    struct bytes found = trained_weights(run);
    assert_int_equal(found.size, expected->size);
    assert_memory_equal(found.data, expected->data, found.size);
    bytes_free(&found);
    assert_int_equal(unlink(small_run_file(run, "stopped.db")), 0);
    unlink(small_run_file(run, "stopped.db-wal"));
    unlink(small_run_file(run, "stopped.db-shm"));
}

RUN_TEST(stopping_is_not_seen_in_the_results, NULL)
{
    struct sequence sequence;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m += test_every()) {
        struct backend_spy count = {0};
        must(run_once(run, methods[m], "whole.db", &count, &sequence));
        struct bytes expected = trained_weights(run);
        for (size_t update = 1; update < count.updates; update += count.updates / 3 + 1)
            goes_on_from(run, methods[m], update, 0, &expected);
        for (size_t prediction = 1; prediction < count.predictions; prediction += count.predictions / 2 + 1)
            goes_on_from(run, methods[m], 0, prediction, &expected);
        bytes_free(&expected);
        assert_int_equal(unlink(small_run_file(run, "whole.db")), 0);
    }
}

/* Stopped in a task's last iteration, the task is not trained again: only its selector, its row and what follows are
 * made. */
RUN_TEST(a_finished_training_is_kept, NULL)
{
    struct sequence sequence;
    struct stop stop = {0};
    struct backend_spy spy = {.stop = &stop, .stop_at_update = 6};
    assert_int_equal(run_once(run, methods[1], "a.db", &spy, &sequence), ERROR_STOPPED); /* one update an iteration */
    struct backend_spy second = {0};
    must(run_once(run, methods[1], "a.db", &second, &sequence));
    assert_int_equal(second.updates, 2 * 6);
}

/* --- Files that belong to others --- */

static void stop_after_the_first_task(struct small_run *run, const char *database)
{
    struct sequence sequence;
    struct stop stop = {0};
    struct backend_spy spy = {.stop = &stop, .stop_at_update = 9};
    assert_int_equal(run_once(run, methods[1], database, &spy, &sequence), ERROR_STOPPED);
}

RUN_TEST(a_resume_file_without_its_rows_is_refused, NULL)
{
    struct sequence sequence;
    stop_after_the_first_task(run, "a.db");
    for (int i = 0; i < 2; i++) { /* not only where the run is new */
        must_refuse(run_once(run, methods[1], "b.db", NULL, &sequence), ERROR_FORMAT, "resume.safetensors", "b.db",
                    "another database", "delete");
    }
    must(run_once(run, methods[1], "a.db", NULL, &sequence)); /* nothing was lost */
    remove_folder_file(run, "resume.safetensors");
    must(run_once(run, methods[1], "b.db", NULL, &sequence)); /* as the message says */
    expect_same_matrix(run, "a.db", "b.db");
}

static void execute(const struct small_run *run, const char *database, const char *sql)
{
    struct database *opened;
    must(database_open(&opened, small_run_file(run, database), STORE_WRITE, NULL, &error));
    must(database_execute(opened, sql, &error));
    database_close(opened);
}

/* While it was stopped, by a number that no count contradicts. */
RUN_TEST(rows_that_somebody_changed_are_refused, NULL)
{
    struct sequence sequence;
    stop_after_the_first_task(run, "a.db");
    execute(run, "a.db", "UPDATE evaluations SET correct = correct + 1000, images = images + 1000 WHERE task = 0");
    must_refuse(run_once(run, methods[1], "a.db", NULL, &sequence), ERROR_FORMAT, "resume.safetensors", "a.db",
                "somebody changed", "delete");
    execute(run, "a.db", "UPDATE evaluations SET correct = correct - 1000, images = images - 1000 WHERE task = 0");
    must(run_once(run, methods[1], "a.db", NULL, &sequence));
}

static void copy_file(const char *from, const char *to)
{
    struct bytes bytes;
    must(file_read(from, FILE_LIMIT, &bytes, &error));
    must(file_write(to, bytes.data, bytes.size, &error));
    bytes_free(&bytes);
}

static void stop_after(struct small_run *run, size_t updates)
{
    struct sequence sequence;
    struct stop stop = {0};
    struct backend_spy spy = {.stop = &stop, .stop_at_update = updates};
    assert_int_equal(run_once(run, methods[1], "a.db", &spy, &sequence), ERROR_STOPPED);
}

/* Stopped twice within the second task: the older resume file goes on with the newer database, and ends with the same
 * results; the newer one does not with the older database, which lacks the rows in between. */
RUN_TEST(an_older_database_is_refused_an_older_resume_file_is_fine, NULL)
{
    struct sequence sequence;
    must(run_once(run, methods[1], "whole.db", NULL, &sequence));
    stop_after(run, 6 + 2);
    char *resume = file_in_folder(run, "resume.safetensors"), *database = strdup(small_run_file(run, "a.db")),
         *old_resume = strdup(small_run_file(run, "old.safetensors")), *old = strdup(small_run_file(run, "old.db")),
         *new = strdup(small_run_file(run, "new.db"));
    copy_file(database, old);
    copy_file(resume, old_resume);
    stop_after(run, 2);
    copy_file(database, new);
    must(file_write(database, "", 0, &error));
    copy_file(old, database);
    must_refuse(run_once(run, methods[1], "a.db", NULL, &sequence), ERROR_FORMAT, "resume.safetensors", "a.db",
                "newer copy", "delete");
    copy_file(new, database);
    copy_file(old_resume, resume);
    must(run_once(run, methods[1], "a.db", NULL, &sequence));
    expect_same_matrix(run, "whole.db", "a.db");
    char *paths[] = {resume, database, old_resume, old, new};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        free(paths[i]);
}

/* One step of the second task is disturbed after its gradients are known. */
static struct {
    const struct backend_ops *real;
    struct backend_ops ops;
    size_t losses;
} disturbed;

static status disturb(struct backend *backend, const struct find_not_finite *arguments, struct error *failure)
{
    static const float bad = INFINITY;
    if (arguments->n == 1 && ++disturbed.losses == 9)
        must(disturbed.real->upload(backend, (float *)arguments->values, &bad, sizeof bad, failure));
    return disturbed.real->find_not_finite(backend, arguments, failure);
}

static status run_disturbed(struct small_run *run, const char *on_nan, const char *database)
{
    struct store *store;
    small_run_reopen(run, 1, WORDS(methods[1], on_nan, "run.log_every=1"));
    disturbed.real = run->experiment->model.backend->ops;
    disturbed.ops = *disturbed.real;
    disturbed.ops.find_not_finite = disturb;
    disturbed.losses = 0;
    run->experiment->model.backend->ops = &disturbed.ops;
    must(store_open(&store, small_run_file(run, database), STORE_WRITE, &error));
    struct sequence sequence = {.run = run->experiment, .store = store};
    status result = sequence_run(&sequence, &error);
    run->experiment->model.backend->ops = disturbed.real;
    store_close(store);
    return result;
}

RUN_TEST(steps_that_are_skipped_are_counted, NULL)
{
    must(run_disturbed(run, "training.on_nan=skip", "skip.db"));
    expect_number(run, "skip.db", "SELECT 100 * task + steps FROM skipped_steps", 101);
    expect_number(run, "skip.db", "SELECT 100 * task + iteration FROM steps WHERE loss IS NULL OR abs(loss) > 1e300",
                  103);
    expect_number(run, "skip.db", "SELECT count(*) FROM runs WHERE status = 'finished'", 1);
    must_refuse(run_disturbed(run, "training.on_nan=stop", "stop.db"), ERROR_FORMAT, "second", "iteration 3", "loss");
    expect_number(run, "stop.db", "SELECT count(*) FROM steps WHERE task = 1", 0);
    expect_number(run, "stop.db", "SELECT count(*) FROM evaluations WHERE after_task = 1", 0);
    expect_number(run, "stop.db", "SELECT count(*) FROM runs WHERE status = 'failed'", 1);
}

/* Adapters in the last of two blocks alone: counts, merges, freezes and effects carry the model's number. */
RUN_TEST(rows_have_the_models_numbers_of_blocks, NULL)
{
    struct sequence sequence;
    must(run_once(run, "adapter.blocks=last_1", "a.db", NULL, &sequence));
    static const char *const tables[] = {"expert_counts", "expert_events", "merge_effects", "class_experts"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "SELECT count(*) > 0 FROM %s WHERE block = 1", tables[i]);
        expect_number(run, "a.db", sql, 1);
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s WHERE block <> 1", tables[i]);
        expect_number(run, "a.db", sql, 0);
    }
}

/* After the last task of all tasks; of tasks that are trained alone after each; and where nothing is kept of images, never. */
RUN_TEST(classes_have_the_experts_of_their_last_test, NULL)
{
    struct sequence sequence;
    must(run_once(run, methods[0], "a.db", NULL, &sequence));
    expect_number(run, "a.db", "SELECT count(DISTINCT task) FROM class_experts WHERE after_task = 2", 3);
    expect_number(run, "a.db", "SELECT count(*) FROM class_experts WHERE after_task <> 2", 0);
    expect_number(run, "a.db", "SELECT count(*) FROM class_usage WHERE class_name IS NULL", 0);
    /* the gates of a sample sum to 1, so that those of the top_k choices are on average 1 / top_k */
    expect_number(run, "a.db", "SELECT count(*) FROM class_experts WHERE NOT gate > 0 OR gate > 1", 0);
    expect_number(run, "a.db", "SELECT round(2000 * sum(gate * count) / sum(count)) FROM class_experts", 1000);
    must(run_once(run, "evaluation.per_image=none", "none.db", NULL, &sequence));
    expect_number(run, "none.db", "SELECT count(*) FROM class_experts", 0);
    struct store *store;
    small_run_reopen(run, 1, WORDS("method.name=finetune", "method.train=adapters"));
    must(store_open(&store, small_run_file(run, "alone.db"), STORE_WRITE, &error));
    sequence = (struct sequence){.run = run->experiment, .store = store};
    must(sequence_run(&sequence, &error));
    store_close(store);
    expect_number(run, "alone.db", "SELECT count(DISTINCT task) FROM class_experts WHERE after_task = task", 3);
}

/* Tokens choose, and the data names the task. */
static status run_per_token(struct small_run *run, const char *database, const char *setting, struct backend_spy *spy)
{
    struct store *store;
    small_run_reopen(run, 1,
                     WORDS("adapter.routing=per_token", "selector.kind=oracle", "evaluation.patch_images=2", setting));
    small_run_watch(run, spy);
    must(store_open_stoppable(&store, small_run_file(run, database), STORE_WRITE, spy->stop, &error));
    struct sequence sequence = {.run = run->experiment, .store = store, .stop = spy->stop};
    status result = sequence_run(&sequence, &error);
    store_close(store);
    return result;
}

/* The caller frees. */
static char *patches_of(const struct small_run *run, const char *database)
{
    struct database *opened;
    struct statement *row;
    must(database_open(&opened, small_run_file(run, database), STORE_READ, NULL, &error));
    must(
        database_row(opened,
                     "SELECT group_concat(printf('%d %d %d %s %d %s', task, image, block, file, width, experts), '; ') "
                     "FROM patch_experts",
                     NO_VALUES, &row, &error));
    char *patches = statement_string(row, 0);
    statement_close(row);
    database_close(opened);
    return patches;
}

/* Of 6, 9 and 12 test images the first and the middle one, with 2 · 2 patches in 2 blocks; also after a stop. */
RUN_TEST(patches_are_recorded_in_the_last_test, NULL)
{
    struct stop stop = {0};
    struct backend_spy count = {0}, off = {0};
    must(run_per_token(run, "whole.db", "run.threads=1", &count));
    expect_number(run, "whole.db", "SELECT count(*) FROM patch_experts WHERE after_task = 2 AND width = 2", 12);
    expect_number(run, "whole.db", "SELECT count(*) FROM patch_experts", 12);
    expect_number(run, "whole.db", "SELECT 100 * sum(image) + sum(block) FROM patch_experts",
                  100 * 2 * (3 + 4 + 6) + 6);
    expect_number(run, "whole.db", "SELECT count(DISTINCT name || file) FROM patch_usage WHERE NOT instr(file, '/')",
                  6);
    expect_number(run, "whole.db", "SELECT 100 * count(*) + sum(2 * y + x) FROM patch_usage",
                  100 * 48 + 12 * (1 + 2 + 3));
    expect_number(
        run, "whole.db",
        "SELECT count(*) FROM patch_usage WHERE NOT expert BETWEEN 0 AND (SELECT max(expert) FROM expert_counts)", 0);
    struct backend_spy spy = {.stop = &stop, .stop_at_prediction = count.predictions - 1};
    assert_int_equal(run_per_token(run, "stopped.db", "run.threads=1", &spy), ERROR_STOPPED);
    expect_number(run, "stopped.db", "SELECT count(*) FROM patch_experts", 0);
    must(run_per_token(run, "stopped.db", "run.threads=1", &off));
    char *whole = patches_of(run, "whole.db"), *continued = patches_of(run, "stopped.db");
    assert_string_equal(whole, continued);
    free(whole);
    free(continued);
    must(run_per_token(run, "none.db", "evaluation.per_image=none", &off));
    expect_number(run, "none.db", "SELECT count(*) FROM patch_experts", 0);
    must(run_per_token(run, "off.db", "evaluation.patch_images=0", &off));
    expect_number(run, "off.db", "SELECT count(*) FROM patch_experts", 0);
}

/* Of the first step of the first task. */
static double first_value(const struct small_run *run, const char *database, const char *column)
{
    struct database *opened;
    char sql[128];
    int64_t millionths;
    snprintf(sql, sizeof sql, "SELECT CAST(round(1e6 * %s) AS INTEGER) FROM steps WHERE task = 0 AND iteration = 1",
             column);
    must(database_open(&opened, small_run_file(run, database), STORE_READ, NULL, &error));
    must(database_integer(opened, sql, &millionths, &error));
    database_close(opened);
    return (double)millionths / 1e6;
}

/* At the first step weights are the same: what the weight changes is the loss. Also with a weight of 0, and by two GPUs. */
RUN_TEST(steps_have_their_balance_loss, NULL)
{
    static const char *const runs[][3] = {{"adapter.balance_loss=none"},
                                          {"adapter.balance_loss=cv", "adapter.balance_weight=0"},
                                          {"adapter.balance_loss=cv", "adapter.balance_weight=0.5"},
                                          {"adapter.balance_loss=cv", "adapter.balance_weight=0.5", "run.gpus=2"}};
    double losses[4], balances[4] = {0};
    for (size_t i = 0; i < (small_run_gpus() < 2 ? 3 : 4); i++) {
        struct store *store;
        char name[16];
        snprintf(name, sizeof name, "%zu.db", i);
        small_run_reopen(run, 1, WORDS(runs[i][0], runs[i][1], runs[i][1] ? runs[i][2] : NULL));
        must(store_open(&store, small_run_file(run, name), STORE_WRITE, &error));
        must(sequence_run(&(struct sequence){.run = run->experiment, .store = store}, &error));
        store_close(store);
        expect_number(run, name, "SELECT sum(balance_loss IS NULL) = count(*) FROM steps", i == 0);
        losses[i] = first_value(run, name, "loss");
        if (i > 0)
            balances[i] = first_value(run, name, "balance_loss");
    }
    assert_true(balances[1] > 0.01 && fabs(balances[2] - balances[1]) < 1e-5 * balances[1]);
    assert_true(fabs(losses[1] - losses[0]) < 1e-5);
    assert_true(fabs(losses[2] - losses[1] - 0.5 * balances[1]) < 1e-4);
    assert_true(small_run_gpus() < 2 || fabs(losses[3] - losses[0] - 0.5 * balances[3]) < 1e-4);
}

RUN_TEST(a_folder_in_use_is_refused, NULL)
{
    struct sequence sequence;
    stop_after_the_first_task(run, "a.db");
    char *folder = run_folder(run->experiment);
    int lock = open(folder, O_RDONLY | O_DIRECTORY);
    assert_true(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0);
    must_refuse(run_once(run, methods[1], "a.db", NULL, &sequence), ERROR_BUSY, folder, "in use", "run.folder");
    close(lock);
    must(run_once(run, methods[1], "a.db", NULL, &sequence));
    free(folder);
}

/* More images than when the run began: rows of both would stand side by side. */
RUN_TEST(data_that_changed_is_refused, NULL)
{
    struct store *store;
    struct sequence sequence;
    stop_after_the_first_task(run, "a.db");
    /* the same suite, but its data changes on disk: here the dataset of another suite takes its place */
    struct small_run other;
    char *root = path_format("data.root=%s", run->scratch.path);
    small_run_open(&other, 1, WORDS(methods[1], root, "run.log_every=2", "tasks.third.test=4"));
    free(root);
    small_run_reopen(run, 1, WORDS(methods[1], "run.log_every=2"));
    struct dataset *original = run->experiment->data.tasks[2].dataset;
    run->experiment->data.tasks[2].dataset = other.experiment->data.tasks[2].dataset;
    must(store_open(&store, small_run_file(run, "a.db"), STORE_WRITE, &error));
    sequence = (struct sequence){.run = run->experiment, .store = store};
    must_refuse(sequence_run(&sequence, &error), ERROR_FORMAT, "the test images of third", "run 1 of",
                "mtil runs delete");
    store_close(store);
    run->experiment->data.tasks[2].dataset = original;
    must(run_once(run, methods[1], "a.db", NULL, &sequence)); /* the data is back */
    small_run_close(&other);
}

/* A sweep over threads or devices estimates all its runs with the same rates. */
RUN_TEST(rates_of_another_machine_are_measured_again, NULL)
{
    struct rates rates = {0};
    must(rates_measure(&rates, run->experiment, &error));
    assert_true(rates.products > 0 && rates.memory > 0);
    rates.products = 1;
    must(rates_measure(&rates, run->experiment, &error));
    assert_true(rates.products == 1); /* known */
    rates.cores++;
    must(rates_measure(&rates, run->experiment, &error));
    assert_true(rates.products > 1);
    rates.products = 1;
    rates.asynchronous = !rates.asynchronous;
    must(rates_measure(&rates, run->experiment, &error));
    assert_true(rates.products > 1);
    rates.products = 1;
    rates.precision = PRECISION_BF16;
    must(rates_measure(&rates, run->experiment, &error));
    assert_true(rates.products > 1);
}
