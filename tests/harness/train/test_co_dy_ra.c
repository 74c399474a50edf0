/* CoDyRA: its arithmetic against recorded numbers (record_co_dy_ra.py), the ranks that a task is left with, and stops. */
#include "harness/methods/low_rank/co_dy_ra.h"

#include <string.h>

#include "harness/methods/methods.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/record.h"
#include "tests/harness/whole_run.h"

enum { ROWS = 6, IN = 8, OUT = 12, RANK = 4, ITERATIONS = 500, IMPORTANCES = 64 };

/* Sums of at most a dozen products in f32. */
#define TOLERANCE 1e-5

#define METHOD "method.name=co_dy_ra", "delta.rank=4", "training.learning_rate=5e-3"

/* --- The public code --- */

/* A layer with one delta, whose gate reads the importances of a group that is its own. */
RUN_TEST(a_layer_is_the_public_codes, METHOD, NULL)
{
    struct safetensors *file = open_file(FIXTURES "/co_dy_ra.safetensors");
    struct deltas *real = run->experiment->model.deltas;
    struct backend *backend = run->experiment->model.backend;
    struct arena *arena = run->experiment->method.memory;
    struct deltas deltas = {.settings = {.rank = RANK, .tasks = 1, .gate = &gate_importance}, .masks = real->masks};
    struct delta_entry entry = {.deltas = &deltas};
    struct delta delta = {.a = record_on_device(run, small_run_recorded(file, "a"), RANK * IN),
                          .b = record_on_device(run, small_run_recorded(file, "b"), RANK * OUT),
                          .da = record_on_device(run, NULL, RANK * IN),
                          .db = record_on_device(run, NULL, RANK * OUT),
                          .rows = RANK,
                          .trained = RANK,
                          .out = OUT,
                          .scale = 1,
                          .trains = true,
                          .gate = &gate_importance,
                          .state = &entry};
    struct linear linear = {.weight.value = record_on_device(run, small_run_recorded(file, "weight"), OUT * IN),
                            .bias.value = record_on_device(run, NULL, OUT),
                            .out = OUT,
                            .in = IN,
                            .deltas = &delta,
                            .delta_count = 1};
    struct matrix x = matrix_rows(record_on_device(run, small_run_recorded(file, "x"), ROWS * IN), ROWS, IN),
                  dy = matrix_rows(record_on_device(run, small_run_recorded(file, "dy"), ROWS * OUT), ROWS, OUT),
                  y = matrix_rows(record_on_device(run, NULL, ROWS * OUT), ROWS, OUT),
                  dx = matrix_rows(record_on_device(run, NULL, ROWS * IN), ROWS, IN);
    parameters_create(&deltas.parameters, backend);
    must(parameters_add(deltas.parameters, "importances", 2, (size_t[]){1, RANK}, 1, 0, &entry.magnitude, &error));
    must(parameters_allocate(deltas.parameters, arena, PARAMETERS_TRAINED, &error));
    must(parameters_upload(deltas.parameters, &deltas.parameters->list[entry.magnitude],
                           small_run_recorded(file, "gate"), &error));
    must(linear_forward(backend, &linear, &(struct linear_forward){.x = x, .y = y, .arena = arena, .training = true},
                        &error));
    must(linear_backward(backend, &linear, &(struct linear_backward){.x = x, .dy = dy, .dx = dx, .arena = arena},
                         &error));
    record_expect_all(run, file, "y", y.data, ROWS * OUT, TOLERANCE);
    record_expect_all(run, file, "dx", dx.data, ROWS * IN, TOLERANCE);
    record_expect_all(run, file, "da", delta.da, RANK * IN, TOLERANCE);
    record_expect_all(run, file, "db", delta.db, RANK * OUT, TOLERANCE);
    record_expect_all(run, file, "dgate", deltas.parameters->gradients, RANK, TOLERANCE);
    parameters_destroy(deltas.parameters);
    safetensors_close(file);
}

/* But for importances between κ and 2 κ, which the public code makes 0. */
RUN_TEST(thresholds_are_the_public_codes, METHOD, NULL)
{
    struct safetensors *file = open_file(FIXTURES "/co_dy_ra.safetensors");
    const float *thresholds = small_run_recorded(file, "thresholds"), *before = small_run_recorded(file, "before"),
                *after = small_run_recorded(file, "after"), last = thresholds[ITERATIONS - 1];
    const struct sparsity_rule rule = {.most = 0.005, .dense = 0.5, .levels = 50};
    size_t between = 0;
    for (size_t i = 0; i < ITERATIONS; i++)
        record_expect_near(co_dy_ra_threshold(&rule, i + 1, ITERATIONS), thresholds[i], 1e-9);
    for (size_t i = 0; i < IMPORTANCES; i++) {
        float size = fabsf(before[i]), found = co_dy_ra_shrink(before[i], last);
        bool differs = size > last && size < 2 * last;
        record_expect_near((double)found, differs ? copysignf(size - last, before[i]) : after[i], 1e-9);
        assert_true(!differs || after[i] == 0);
        between += differs;
    }
    assert_true(between > 0 && between < IMPORTANCES / 2);
    assert_true(isnan(co_dy_ra_shrink(NAN, last))); /* no rank is dropped for it */
    safetensors_close(file);
}

/* Fewer iterations than levels: the threshold still rises. */
TEST(a_level_lasts_an_iteration_at_least)
{
    const struct sparsity_rule rule = {.most = 49, .dense = 0.5, .levels = 50};
    assert_true(co_dy_ra_threshold(&rule, 6, 10) == 0);
    assert_true(co_dy_ra_threshold(&rule, 7, 10) == 2);
    assert_true(co_dy_ra_threshold(&rule, 10, 10) == 5);
}

/* --- Training --- */

/* Rows of B that are not 0, of all matrices, after a task. */
static size_t ranks_left(const struct small_run *run, size_t task)
{
    struct deltas *d = run->experiment->model.deltas;
    size_t left = 0;
    for (size_t i = 0; i < d->count; i++) {
        const struct delta_entry *e = &d->list[i];
        float importances[RANK], *b = small_run_keep(malloc(RANK * e->out * sizeof *b));
        must(deltas_read(d, e, DELTA_MAGNITUDE, task, importances, &error));
        must(deltas_read(d, e, DELTA_B, task, b, &error));
        for (size_t r = 0; r < RANK; r++) {
            size_t o = 0;
            while (o < e->out && b[r * e->out + o] == 0)
                o++;
            left += o < e->out;
            assert_true(importances[r] == 1);
        }
    }
    return left;
}

/* The greater the threshold, the fewer ranks; with none of them, the model is what it was. */
RUN_TEST(thresholds_select_ranks, METHOD, NULL)
{
    static const char *const sparsity[] = {"method.sparsity=0", "method.sparsity=0.3", "method.sparsity=1000"};
    size_t left[3], all = 0;
    for (size_t k = 0; k < 3; k++) {
        small_run_reopen(run, 1, WORDS(METHOD, sparsity[k], "method.levels=4"));
        float *before = whole_run_features(run);
        learn(run, 0);
        float *after = whole_run_features(run);
        size_t embed = run->experiment->model.clip->dimensions.embed;
        all = run->experiment->model.deltas->count * RANK;
        left[k] = ranks_left(run, 0);
        assert_true((memcmp(before, after, embed * sizeof *after) == 0) == (left[k] == 0));
    }
    assert_int_equal(left[0], all);
    assert_true(left[1] > 0 && left[1] < all);
    assert_int_equal(left[2], 0);
}

/* The weights take what was trained: the model of a task that learns nothing is that of the task before. */
RUN_TEST(a_task_is_merged, METHOD, NULL)
{
    learn(run, 0);
    float *trained = whole_run_features(run), *importances = small_run_keep(malloc(RANK * sizeof *importances));
    struct deltas *d = run->experiment->model.deltas;
    must(deltas_begin_task(d, 1, 1, 0, &error));
    must(deltas_read(d, &d->list[0], DELTA_MAGNITUDE, 1, importances, &error));
    float *merged = whole_run_features(run);
    for (size_t i = 0; i < run->experiment->model.clip->dimensions.embed; i++)
        record_expect_near((double)merged[i], trained[i], 1e-4);
    for (size_t r = 0; r < RANK; r++)
        assert_true(importances[r] != 0 && importances[r] != 1); /* a start of its own */
}

RUN_TEST(a_stop_is_not_seen, METHOD, NULL)
{
    expect_stop_between(run, WORDS(METHOD, "method.sparsity=2", "method.levels=4"), 4);
}
