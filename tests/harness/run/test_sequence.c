/* A run from its first iteration to its last test, with stops; what other files and rows do to one is in resume/resumed.txt. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/sketch.h"
#include "core/alloc.h"
#include "core/file.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "models/clip/cost.h"
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

/* Operations of the step and of a test image, of which adapters add some; of distillation, whose passes are not counted, of an image
 * alone. Images are counted that went through the tower, each with its time; those of zero-shot CLIP are not. */
RUN_TEST(what_a_run_costs_is_recorded, NULL)
{
    must(run_once(run, weights, "a.db", NULL));
    const struct model *model = &run->experiment->model;
    const struct clip_dimensions *n = &model->clip->dimensions;
    size_t texts, positions;
    model->head->texts(model, &run->experiment->data.tasks[1], &texts, &positions);
    double image = cost_images(n, 1),
           step = 3 * (cost_images(n, run->experiment->data.tasks[1].settings.batch) + cost_texts(n, texts, positions));
    expect_number(run, "a.db", "SELECT count(*) FROM operations", 3);
    expect_number(run, "a.db",
                  small_run_format("SELECT step = %.17g AND image = %.17g FROM operations WHERE task = 1", step, image),
                  1);
    expect_number(run, "a.db", "SELECT sum(encoded) FROM resources", 3 * (6 + 9 + 12));
    expect_number(run, "a.db",
                  "SELECT sum(phase = 'evaluate' AND task >= 0 AND encoding > 0) = count(*) FROM resources", 1);
    expect_number(run, "a.db", "SELECT count(device_bytes) FROM resources", 0);
    expect_number(
        run, "a.db",
        "SELECT machine GLOB '*?, [0-9]* thread*' AND images_per_second > 0 AND seconds_per_step > 0 FROM costs", 1);
    must(run_once(run, adapters, "b.db", NULL));
    expect_number(run, "b.db", small_run_format("SELECT min(image) > %.17g AND min(step) > 0 FROM operations", image),
                  1);
    must(run_once(run, "method.name=lwf", "c.db", NULL));
    expect_number(run, "c.db", "SELECT max(step) IS NULL AND min(image) > 0 FROM operations", 1);
}

#define SKETCHES                                                                                                       \
    "SELECT count(*) || ' ' || count(DISTINCT task || ' ' || iteration) || ' ' || digest(task || ' ' || iteration || " \
    "encoder || block || ' ' || expert || ' ' || shortest(distance) || hex(sketch)) "                                  \
    "FROM (SELECT * FROM expert_sketches ORDER BY task, iteration, encoder, block, expert)"

/* Experts at the start, after every second iteration of six, and at the end of each of three tasks; a stop before the second save, in a
 * task and after one is not seen. Without the key there are none. */
RUN_TEST(sketches_of_experts_are_stored, NULL)
{
    const char *const words[] = {adapters, "run.trajectory_every=2", "run.checkpoint_every=1", NULL};
    small_run_reopen(run, 1, words);
    must(whole_run(run, "a.db", NULL));
    const char *whole = whole_run_text(run, "a.db", SKETCHES);
    expect_number(run, "a.db", "SELECT count(DISTINCT task || ' ' || iteration) FROM expert_sketches", 1 + 3 * 3);
    expect_number(run, "a.db", "SELECT count(*) FROM expert_sketches WHERE iteration = 7 AND distance > 0",
                  3 * 2 * 2 * (int64_t)run->experiment->model.settings.adapter.experts);
    for (size_t update = 1; update <= 12; update++) {
        struct stop stop = {0};
        struct backend_spy spy = {.stop = &stop, .stop_at_update = update};
        const char *database = small_run_format("stop%zu.db", update);
        small_run_reopen(run, 1, words);
        assert_int_equal(whole_run(run, database, &spy), ERROR_STOPPED);
        small_run_reopen(run, 1, words);
        must(whole_run(run, database, NULL));
        expect_text(run, database, SKETCHES, whole);
    }
    must(run_once(run, adapters, "none.db", NULL));
    expect_number(run, "none.db", "SELECT count(*) FROM expert_sketches", 0);
}

/* Distances to the mean are those of all parameters; sketches keep them, and are linear. */
RUN_TEST(sketches_keep_distances, NULL)
{
    const struct adapter_tower *tower = &run->experiment->model.adapters->towers[TOWER_IMAGE];
    size_t experts = run->experiment->model.settings.adapter.experts;
    struct expert_sketch *sketches = xcalloc(experts, sizeof *sketches);
    must(adapters_sketch(run->experiment->model.adapters, TOWER_IMAGE, 0, sketches, &error));
    const float *values = small_run_adapters(run, TOWER_IMAGE);
    for (size_t e = 0; e < experts; e++) {
        double exact = 0, kept = 0;
        for (size_t i = 0; i < EXPERT_PARTS; i++) {
            const struct parameter *p = &tower->parameters->list[tower->banks[0].parts[i]];
            size_t size = p->size / experts;
            for (size_t k = 0; k < size; k++) {
                double mean = 0;
                for (size_t other = 0; other < experts; other++)
                    mean += (double)values[p->offset + other * size + k] / (double)experts;
                exact += pow((double)values[p->offset + e * size + k] - mean, 2);
            }
        }
        for (size_t k = 0; k < SKETCH; k++) {
            double mean = 0;
            for (size_t other = 0; other < experts; other++)
                mean += (double)sketches[other].values[k] / (double)experts;
            kept += pow((double)sketches[e].values[k] - mean, 2);
        }
        assert_true(exact > 0 && fabs(sketches[e].distance - sqrt(exact)) < 1e-12 * sqrt(exact));
        assert_true(fabs(kept - exact) < 5 * sqrt(2.0 / SKETCH) * exact); /* five standard errors */
    }
    free(sketches);
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

/* The share of a batch of eight; a contrastive loss has none. */
RUN_TEST(steps_have_their_accuracy, NULL)
{
    must(whole_run(run, "classes.db", NULL));
    expect_number(run, "classes.db", "SELECT count(*) = 6 AND min(8 * accuracy = round(8 * accuracy)) FROM steps", 1);
    expect_number(run, "classes.db", "SELECT count(DISTINCT accuracy) > 2 FROM steps", 1);
    small_run_reopen(run, 1, WORDS("training.loss=contrastive"));
    must(whole_run(run, "pairs.db", NULL));
    expect_number(run, "pairs.db", "SELECT count(*) = 6 AND max(accuracy IS NULL) FROM steps", 1);
    if (small_run_gpus() < 2)
        return;
    small_run_reopen(run, 1, WORDS("run.gpus=2"));
    must(whole_run(run, "ranks.db", NULL));
    expect_text(run, "ranks.db", "SELECT accuracy FROM steps LIMIT 1",
                whole_run_text(run, "classes.db", "SELECT accuracy FROM steps LIMIT 1"));
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

/* Two seconds at each look: every third iteration has a line. */
static double ticking(void)
{
    static double seconds;
    return seconds += 2;
}

RUN_TEST(the_time_left_is_known_in_the_first_task, "training.iterations=4", "training.batch=1", NULL)
{
    struct store *store;
    struct progress *progress;
    char *said;
    size_t size;
    FILE *stream = open_memstream(&said, &size);
    progress_create(&progress,
                    &(struct progress_settings){.stream = stream, .style = PROGRESS_PLAIN, .clock = ticking});
    must(store_open(&store, small_run_file(run, "a.db"), STORE_WRITE, &error));
    must(sequence_run(&(struct sequence){.run = run->experiment, .store = store, .progress = progress}, &error));
    store_close(store);
    progress_destroy(progress);
    fclose(stream);
    char *line = strstr(said, "task 1 of 3  train first  4/4");
    assert_non_null(line);
    line[strcspn(line, "\n")] = 0;
    assert_non_null(strstr(line, " left"));
    free(said);
}

/* A second visit has the data and settings of the first, a column of its own, and what is set for it alone. */
RUN_TEST(a_task_comes_twice, "data.order=first,second,first@2", "tasks.first.batch=3", "tasks.first@2.iterations=2",
         "run.log_every=1", NULL)
{
    must(whole_run(run, "a.db", NULL));
    expect_text(run, "a.db",
                "SELECT group_concat(name || classes || training_images, ' ') FROM (SELECT * FROM tasks ORDER BY task)",
                "first212 second318 first@2212");
    expect_number(run, "a.db", "SELECT count(DISTINCT test_digest) FROM tasks", 2);
    expect_number(run, "a.db", "SELECT count(*) FROM evaluations", 12);
    expect_text(run, "a.db",
                "SELECT group_concat(value, ' ') FROM (SELECT value FROM settings WHERE key LIKE 'tasks.first%.batch' "
                "ORDER BY key)",
                "3 3");
    expect_number(run, "a.db", "SELECT max(iteration) FROM steps WHERE task = 2", 2);
    assert_int_equal(whole_run_faults(run, "a.db", whole_run_cells), 0);
    must_refuse(small_run_try(run, 1, WORDS("data.order=first,first@2", "evaluation.label_space=seen")), ERROR_ARGUMENT,
                "first@2", "label_space=task");
}
