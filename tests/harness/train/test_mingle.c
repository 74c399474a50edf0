/* MINGLE: its arithmetic against recorded numbers (record_mingle.py), what its gates learn, and stops. */
#include "harness/methods/low_rank/mingle.h"

#include "harness/methods/methods.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/record.h"
#include "tests/harness/whole_run.h"

enum { ROWS = 6, IN = 8, OUT = 12, RANK = 4, EXPERTS = 2, STEPS = 3, DIRECTIONS = 4 };

/* Sums of at most two dozen products in f32. */
#define TOLERANCE 1e-5

#define METHOD "method.name=mingle", "delta.rank=4", "training.learning_rate=5e-3", "method.gate_iterations=6"

static double *doubles(const struct safetensors *file, const char *name, size_t n)
{
    const float *values = small_run_recorded(file, name);
    double *out = small_run_keep(malloc(n * sizeof *out));
    for (size_t i = 0; i < n; i++)
        out[i] = (double)values[i];
    return out;
}

/* Two experts, of which the second is trained; the masks are those of three. */
RUN_TEST(a_layer_is_the_public_codes, METHOD, NULL)
{
    struct safetensors *file = open_file(FIXTURES "/mingle.safetensors");
    struct backend *backend = run->experiment->model.backend;
    struct arena *arena = run->experiment->method.memory;
    struct deltas deltas = {
        .settings = {.rank = RANK, .tasks = run->experiment->data.task_count, .gate = &gate_by_input},
        .masks = run->experiment->model.deltas->masks};
    struct delta_entry entry = {.deltas = &deltas};
    struct delta delta = {.a = record_on_device(run, small_run_recorded(file, "a"), EXPERTS * RANK * IN),
                          .b = record_on_device(run, small_run_recorded(file, "b"), EXPERTS * RANK * OUT),
                          .da = record_on_device(run, NULL, RANK * IN),
                          .db = record_on_device(run, NULL, RANK * OUT),
                          .rows = EXPERTS * RANK,
                          .trained = RANK,
                          .out = OUT,
                          .scale = 1,
                          .trains = true,
                          .gate = &gate_by_input,
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
    must(linear_forward(backend, &linear, &(struct linear_forward){.x = x, .y = y, .arena = arena, .training = true},
                        &error));
    must(linear_backward(backend, &linear, &(struct linear_backward){.x = x, .dy = dy, .dx = dx, .arena = arena},
                         &error));
    record_expect_all(run, file, "y", y.data, ROWS * OUT, TOLERANCE);
    record_expect_all(run, file, "dx", dx.data, ROWS * IN, TOLERANCE);
    record_expect_all(run, file, "dw", delta.da + (RANK - 1) * IN, IN, TOLERANCE);
    record_expect_all(run, file, "dbias", delta.db + (RANK - 1) * OUT, 1, TOLERANCE);
    safetensors_close(file);
}

TEST(gradients_are_constrained_as_the_public_codes)
{
    struct safetensors *file = open_file(FIXTURES "/mingle.safetensors");
    const struct gate_constraint constraint = {.relaxation = 2, .memory = 0.9};
    const struct subspace space = {.n = IN, .rank = DIRECTIONS, .basis = doubles(file, "directions", DIRECTIONS * IN)};
    double *gradients = doubles(file, "gradients", STEPS * IN), found[DIRECTIONS] = {0};
    const float *constrained = small_run_recorded(file, "constrained"),
                *interference = small_run_recorded(file, "interference");
    for (size_t s = 0; s < STEPS; s++)
        mingle_constrain(&space, &constraint, found, gradients + s * IN);
    for (size_t i = 0; i < STEPS * IN; i++)
        record_expect_near(gradients[i], constrained[i], TOLERANCE);
    for (size_t k = 0; k < DIRECTIONS; k++)
        record_expect_near(found[k], interference[k], TOLERANCE);
    safetensors_close(file);
}

TEST(experts_are_separated_as_the_public_codes)
{
    struct safetensors *file = open_file(FIXTURES "/mingle.safetensors");
    double *change = doubles(file, "change", OUT * IN), *merged = doubles(file, "merged", OUT * IN);
    const float *separated = small_run_recorded(file, "separated");
    must(mingle_separate(change, merged, OUT, IN, &error));
    for (size_t i = 0; i < OUT * IN; i++)
        record_expect_near(change[i], separated[i], TOLERANCE);
    safetensors_close(file);
}

/* Directions are orthonormal, and one that is there already is not taken again. */
TEST(directions_are_added_once)
{
    const double covariance[] = {4, 0, 0, 0, 9, 0, 0, 0, 1}, other[] = {1, 1, 0, 1, 1, 0, 0, 0, 0};
    struct subspace space = {.n = 3};
    must(mingle_extend(&space, covariance, 1, &error));
    must(mingle_extend(&space, covariance, 1, &error));
    assert_int_equal(space.rank, 1);
    must(mingle_extend(&space, other, 1, &error)); /* (1, 1, 0) beside (0, 1, 0) */
    assert_int_equal(space.rank, 2);
    assert_true(fabs(fabs(space.basis[1]) - 1) < 1e-12 && fabs(fabs(space.basis[3]) - 1) < 1e-12);
    subspace_free(&space);
}

/* Gates bring the mixture closer to the expert alone. */
RUN_TEST(gates_learn_the_expert, METHOD, NULL)
{
    float loss[2];
    for (int learns = 0; learns < 2; learns++) {
        small_run_reopen(run, 1, WORDS(METHOD, learns ? "method.gate_rate=0.02" : "method.gate_rate=0"));
        learn(run, 0);
        learn(run, 1);
        struct backend *backend = run->experiment->model.backend;
        must(backend->ops->download(backend, &loss[learns], run->experiment->model.loss, sizeof loss[0], &error));
    }
    if (!(loss[1] < loss[0] - 1e-3f))
        fail_msg("loss %g with fixed gates, %g with trained ones", (double)loss[0], (double)loss[1]);
}

/* Earlier experts and gates stay, and so do their weights. */
RUN_TEST(earlier_tasks_stay, METHOD, NULL)
{
    struct deltas *d = run->experiment->model.deltas;
    const struct delta_entry *e = &d->list[0];
    size_t n = RANK * e->in;
    float *a[2], *weight[2];
    learn(run, 0);
    for (int k = 0; k < 2; k++) {
        a[k] = small_run_keep(malloc(n * sizeof **a));
        weight[k] = small_run_keep(malloc(e->in * e->out * sizeof **weight));
        must(deltas_read(d, e, DELTA_A, 0, a[k], &error));
        must(deltas_read_weight(d, e, weight[k], &error));
        if (k == 0)
            learn(run, 1);
    }
    assert_memory_equal(a[0], a[1], n * sizeof **a);
    assert_memory_equal(weight[0], weight[1], e->in * e->out * sizeof **weight);
    assert_int_equal(e->delta->rows, 2 * RANK);
}

RUN_TEST(a_stop_is_not_seen, METHOD, NULL)
{
    expect_stop_between(run, WORDS(METHOD), 4);
}

RUN_TEST(gates_need_second_moments, METHOD, NULL)
{
    must_refuse(small_run_try(run, 1, WORDS(METHOD, "training.optimizer=sgd")), ERROR_ARGUMENT, "training.optimizer",
                "sgd", "adamw");
}
