/* A run from its first iteration to its last test, with stops; what other files and rows do to one is in resumed.txt. */
#include <math.h>
#include <stdlib.h>

#include "core/file.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/whole_run.h"

static const char adapters[] = "method.name=moe_adapters", weights[] = "method.name=continual_ft";

/* One call of the program: opens, runs, closes. */
static status run_once(struct small_run *run, const char *word, const char *database, struct backend_spy *spy)
{
    small_run_reopen(run, 1, WORDS(word, "run.log_every=2"));
    return whole_run(run, database, spy);
}

#define ABOUT_DATA                                                                                                     \
    "SELECT setting || ' ' || task_order || ' ' || group_concat(training_images || '/' || test_images, ' ') "          \
    "FROM runs JOIN tasks USING (run)"

RUN_TEST(fills_the_matrix_and_is_then_only_shown, NULL)
{
    must(run_once(run, adapters, "a.db", NULL));
    assert_false(whole_run_sequence.finished_before);
    assert_int_equal(whole_run_sequence.iterations, 3 * 6);
    expect_text(run, "a.db", ABOUT_DATA, "full_shot small 12/6 18/9 24/12");
    expect_number(run, "a.db", "SELECT sum(length(test_digest)) + count(DISTINCT test_digest) FROM tasks", 3 * 64 + 3);
    assert_false(file_exists(whole_run_file(run, "resume.safetensors")));
    assert_int_equal(whole_run_faults(run, "a.db", whole_run_cells), 0);
    struct backend_spy spy = {0};
    must(run_once(run, adapters, "a.db", &spy));
    assert_true(whole_run_sequence.finished_before);
    assert_true(spy.updates == 0 && spy.encodings == 0);
}

/* The names of a task's nine training images. */
static const char *shots_of(const struct small_run *run, size_t task)
{
    const struct dataset *dataset = run->experiment->data.tasks[task].dataset;
    const char *names = "";
    assert_int_equal(dataset_size(dataset, SPLIT_TRAIN), 9);
    for (size_t i = 0; i < 9; i++)
        names = small_run_format("%s %s", names, (char *)small_run_keep(dataset_item_name(dataset, SPLIT_TRAIN, i)));
    return names;
}

/* The same images under another order, batch and number of threads; others under another seed. */
RUN_TEST(few_shots_depend_on_the_seed_alone, "data.shots=3", "tasks.second.train=100", NULL)
{
    const char *names = shots_of(run, 1);
    small_run_reopen(run, 5, WORDS("data.shots=3", "tasks.second.train=100"));
    assert_string_not_equal(shots_of(run, 1), names);
    small_run_reopen(run, 1,
                     WORDS("data.shots=3", "tasks.second.train=100", "data.order=second,third", "data.order_name=II",
                           "run.threads=1", "training.batch=3"));
    assert_string_equal(shots_of(run, 0), names);
    must(whole_run(run, "a.db", NULL));
    expect_text(run, "a.db", ABOUT_DATA, "few_shot II 9/9 12/12");
}

/* Stopped in a task's last iteration, the task is not trained again: only its selector, its row and what follows are
 * made. */
RUN_TEST(a_finished_training_is_kept, NULL)
{
    struct stop stop = {0};
    struct backend_spy first = {.stop = &stop, .stop_at_update = 6}, second = {0};
    assert_int_equal(run_once(run, weights, "a.db", &first), ERROR_STOPPED);
    must(run_once(run, weights, "a.db", &second));
    assert_int_equal(second.updates, 2 * 6);
}

/* One step of the second task is disturbed after its gradients are known. */
static const struct backend_ops *undisturbed;
static size_t losses_seen;

static status disturb(struct backend *backend, const struct find_not_finite *arguments, struct error *failure)
{
    static const float bad = INFINITY;
    if (arguments->n == 1 && ++losses_seen == 9)
        must(undisturbed->upload(backend, (float *)arguments->values, &bad, sizeof bad, failure));
    return undisturbed->find_not_finite(backend, arguments, failure);
}

static status run_disturbed(struct small_run *run, const char *on_nan, const char *database)
{
    small_run_reopen(run, 1, WORDS(weights, on_nan, "run.log_every=1"));
    change_operations(run->experiment->model.backend, &undisturbed)->find_not_finite = disturb;
    losses_seen = 0;
    return whole_run(run, database, NULL);
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
    must(run_once(run, "adapter.blocks=last_1", "a.db", NULL));
    static const char *const tables[] = {"expert_counts", "expert_events", "merge_effects", "class_experts"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        expect_number(run, "a.db", small_run_format("SELECT count(*) > 0 AND min(block = 1) FROM %s", tables[i]), 1);
}

/* After the last task of all tasks; of tasks that are trained alone after each; and where nothing is kept of images, never. */
RUN_TEST(classes_have_the_experts_of_their_last_test, NULL)
{
    must(run_once(run, adapters, "a.db", NULL));
    expect_number(run, "a.db", "SELECT count(DISTINCT task) FROM class_experts WHERE after_task = 2", 3);
    expect_number(run, "a.db", "SELECT count(*) FROM class_experts WHERE after_task <> 2", 0);
    expect_number(run, "a.db", "SELECT count(*) FROM class_usage WHERE class_name IS NULL", 0);
    /* the gates of a sample sum to 1, so that those of the top_k choices are on average 1 / top_k */
    expect_number(run, "a.db", "SELECT count(*) FROM class_experts WHERE NOT gate > 0 OR gate > 1", 0);
    expect_number(run, "a.db",
                  "SELECT CAST(round(2000 * sum(gate * count) / sum(count)) AS INTEGER) FROM class_experts", 1000);
    must(run_once(run, "evaluation.per_image=none", "none.db", NULL));
    expect_number(run, "none.db", "SELECT count(*) FROM class_experts", 0);
    small_run_reopen(run, 1, WORDS("method.name=finetune", "method.train=adapters"));
    must(whole_run(run, "alone.db", NULL));
    expect_number(run, "alone.db", "SELECT count(DISTINCT task) FROM class_experts WHERE after_task = task", 3);
}

/* Tokens choose, and the data names the task. */
static status run_per_token(struct small_run *run, const char *database, const char *setting, struct backend_spy *spy)
{
    small_run_reopen(run, 1,
                     WORDS("adapter.routing=per_token", "selector.kind=oracle", "evaluation.patch_images=2", setting));
    return whole_run(run, database, spy);
}

#define PATCHES                                                                                                        \
    "SELECT coalesce(group_concat(printf('%d %d %d %s %d %s', task, image, block, file, width, experts), '; '), "      \
    "'none') FROM patch_experts"

/* Of 6, 9 and 12 test images the first and the middle one, with 2 · 2 patches in 2 blocks; also after a stop. */
RUN_TEST(patches_are_recorded_in_the_last_test, NULL)
{
    static const struct {
        const char *sql;
        int64_t expected;
    } answers[] = {
        {"SELECT count(*) FROM patch_experts WHERE after_task = 2 AND width = 2", 12},
        {"SELECT count(*) FROM patch_experts", 12},
        {"SELECT 100 * sum(image) + sum(block) FROM patch_experts", 100 * 2 * (3 + 4 + 6) + 6},
        {"SELECT count(DISTINCT name || file) FROM patch_usage WHERE NOT instr(file, '/')", 6},
        {"SELECT 100 * count(*) + sum(2 * y + x) FROM patch_usage", 100 * 48 + 12 * (1 + 2 + 3)},
        {"SELECT count(*) FROM patch_usage WHERE NOT expert BETWEEN 0 AND (SELECT max(expert) FROM expert_counts)", 0}};
    struct stop stop = {0};
    struct backend_spy count = {0};
    must(run_per_token(run, "whole.db", "run.threads=1", &count));
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        expect_number(run, "whole.db", answers[i].sql, answers[i].expected);
    struct backend_spy spy = {.stop = &stop, .stop_at_prediction = count.predictions - 1};
    assert_int_equal(run_per_token(run, "stopped.db", "run.threads=1", &spy), ERROR_STOPPED);
    expect_text(run, "stopped.db", PATCHES, "none");
    must(run_per_token(run, "stopped.db", "run.threads=1", NULL));
    expect_text(run, "stopped.db", PATCHES, whole_run_text(run, "whole.db", PATCHES));
    must(run_per_token(run, "none.db", "evaluation.per_image=none", NULL));
    expect_text(run, "none.db", PATCHES, "none");
    must(run_per_token(run, "off.db", "evaluation.patch_images=0", NULL));
    expect_text(run, "off.db", PATCHES, "none");
}

static double first_step(const struct small_run *run, const char *database, const char *column)
{
    const char *sql = small_run_format("SELECT %s FROM steps WHERE task = 0 AND iteration = 1", column);
    return strtod(whole_run_text(run, database, sql), NULL);
}

/* At the first step weights are the same: what the weight changes is the loss. Also with a weight of 0, and by two GPUs. */
RUN_TEST(steps_have_their_balance_loss, NULL)
{
    static const char *const runs[][3] = {{"adapter.balance_loss=none"},
                                          {"adapter.balance_loss=cv", "adapter.balance_weight=0"},
                                          {"adapter.balance_loss=cv", "adapter.balance_weight=0.5"},
                                          {"adapter.balance_loss=cv", "adapter.balance_weight=0.5", "run.gpus=2"}};
    double losses[4], balances[4];
    for (size_t i = 0; i < (small_run_gpus() < 2 ? 3 : 4); i++) {
        const char *name = small_run_format("%zu.db", i);
        small_run_reopen(run, 1, WORDS(runs[i][0], runs[i][1], runs[i][1] ? runs[i][2] : NULL));
        must(whole_run(run, name, NULL));
        expect_number(run, name, "SELECT sum(balance_loss IS NULL) = count(*) FROM steps", i == 0);
        losses[i] = first_step(run, name, "loss");
        balances[i] = i > 0 ? first_step(run, name, "balance_loss") : 0;
    }
    assert_true(balances[1] > 0.01 && fabs(balances[2] - balances[1]) < 1e-5 * balances[1]);
    assert_true(fabs(losses[1] - losses[0]) < 1e-5);
    assert_true(fabs(losses[2] - losses[1] - 0.5 * balances[1]) < 1e-4);
    assert_true(small_run_gpus() < 2 || fabs(losses[3] - losses[0] - 0.5 * balances[3]) < 1e-4);
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
    for (int changed = 0; changed < 3; changed++) {
        rates.products = 1;
        rates.cores += changed == 0;
        rates.asynchronous ^= changed == 1;
        rates.precision = changed == 2 ? PRECISION_BF16 : rates.precision;
        must(rates_measure(&rates, run->experiment, &error));
        assert_true(rates.products > 1);
    }
}
