/* Methods on low-rank deltas: what defines each of them, several GPUs, and what keep_lora and moram start with. */
#include <math.h>
#include <stdlib.h>

#include "harness/methods/low_rank/keep_lora.h"
#include "harness/methods/methods.h"
#include "harness/train/services/layer_pass.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/plain.h"
#include "tests/harness/whole_run.h"

enum { RANK = 4 };

#define RANK_4 "delta.rank=4", "training.learning_rate=5e-3"

static float *part_of(const struct small_run *run, size_t entry, enum delta_part part, size_t task, size_t *n)
{
    const struct deltas *d = run->experiment->model.deltas;
    const struct delta_entry *e = &d->list[entry];
    *n = part == DELTA_MAGNITUDE ? 1 : RANK * (part == DELTA_A ? e->in : e->out);
    float *values = small_run_keep(malloc(*n * sizeof *values));
    must(deltas_read(d, e, part, task, values, &error));
    return values;
}

/* The same numbers, but for the order of sums. */
RUN_TEST(several_gpus_train_together, "method.name=continual_ft", NULL)
{
    for (size_t i = 0; small_run_gpus() >= 2 && method_at(i) != NULL; i++) {
        struct options *options;
        must(options_create(&options, method_at(i)->options, &error));
        bool deltas = method_groups(method_at(i), options) == GROUP_DELTAS;
        options_destroy(options);
        const char *name = small_run_format("method.name=%s", method_at(i)->name);
        if (deltas)
            expect_ranks_unseen(run, WORDS(name, RANK_4), 2, 2e-3, INFINITY);
    }
}

static double orthogonality(const struct small_run *run)
{
    const struct deltas *d = run->experiment->model.deltas;
    double sum = 0;
    for (size_t i = 0; i < d->count; i++) {
        size_t n, in = d->list[i].in;
        float *a = part_of(run, i, DELTA_A, 0, &n), *b = part_of(run, i, DELTA_A, 1, &n);
        for (size_t r = 0; r < RANK; r++)
            for (size_t s = 0; s < RANK; s++)
                sum += fabs(plain_dot(a + r * in, b + s * in, in));
    }
    return sum;
}

/* Training with lambda brings A closer to being orthogonal, and the loss has the term. */
RUN_TEST(o_lora_parts_the_tasks, NULL)
{
    double apart[2], first[2];
    for (int with = 0; with < 2; with++) {
        small_run_reopen(run, 1, WORDS("method.name=o_lora", RANK_4, with ? "method.lambda=0.5" : "method.lambda=0"));
        learn(run, 0);
        double before = orthogonality(run);
        first[with] = learn(run, 1).loss[0] - (with ? 0.5 * before : 0);
        apart[with] = orthogonality(run);
    }
    assert_true(apart[1] < 0.8 * apart[0]);
    assert_true(fabs(first[1] - first[0]) < 1e-4);
}

/* A has orthonormal rows / √3, stays, and sees no more energy of the first task's inputs than is left unprotected. */
RUN_TEST(inf_lora_designs_a, "method.name=inf_lora", RANK_4, "method.share_first=0.99", NULL)
{
    struct layer_pass pass;
    struct run *e = run->experiment;
    struct deltas *d = e->model.deltas;
    learn(run, 0);
    must(deltas_begin_task(d, 0, 0, 0, &error));
    must(layer_pass_run(&pass, &e->method, &e->data.tasks[0], LAYER_COVARIANCE, 0, &error));
    learn(run, 1);
    for (size_t i = 0, layer = 0; i < d->count; i++) {
        size_t n, in = d->list[i].in;
        float *a = part_of(run, i, DELTA_A, 1, &n);
        layer += d->list[i].linear != pass.list[layer].linear;
        const double *c = pass.list[layer].values;
        double seen = 0, all = 0, most = 0;
        for (size_t r = 0; r < RANK; r++)
            for (size_t s = 0; s < RANK; s++)
                assert_true(fabs(plain_dot(a + r * in, a + s * in, in) - (r == s ? 1.0 / 3 : 0)) < 1e-5);
        for (size_t k = 0; k < in * in; k++)
            all += c[k] * c[k];
        for (size_t r = 0; r < RANK; r++) {
            double along = 0;
            for (size_t k = 0; k < in; k++)
                for (size_t l = 0; l < in; l++)
                    along += 3 * (double)a[r * in + k] * c[k * in + l] * (double)a[r * in + l];
            seen += along * along;
            most = fmax(most, along * along);
        }
        assert_true(seen - most < 0.0101 * all); /* the vector that crosses the share is the first left out */
    }
    layer_pass_free(&pass);
}

/* After a task its direction has norm 1, and the model is what was trained. */
RUN_TEST(sd_lora_parts_direction_and_magnitude, "method.name=sd_lora", RANK_4, NULL)
{
    const struct deltas *d = run->experiment->model.deltas;
    learn(run, 0);
    for (size_t i = 0; i < d->count; i++) {
        size_t n;
        for (int half = 0; half < 2; half++) {
            float *values = part_of(run, i, half ? DELTA_B : DELTA_A, 0, &n);
            assert_true(fabs(plain_dot(values, values, n) - 1) < 1e-5);
        }
    }
    size_t n;
    float *before = part_of(run, 0, DELTA_A, 0, &n), *magnitude = part_of(run, 0, DELTA_MAGNITUDE, 0, &n);
    learn(run, 1);
    float *now = part_of(run, 0, DELTA_MAGNITUDE, 0, &n), *later = part_of(run, 0, DELTA_A, 0, &n);
    assert_memory_equal(before, later, n * sizeof *later);
    assert_true(*now != *magnitude);
}

/* The gradient of a whole weight is the change of the loss. */
RUN_TEST(the_pass_gives_the_gradient_of_a_weight, "method.name=lora", RANK_4, NULL)
{
    struct layer_pass pass;
    struct run *e = run->experiment;
    must(deltas_begin_task(e->model.deltas, 0, 0, 0, &error));
    must(layer_pass_run(&pass, &e->method, &e->data.tasks[0], LAYER_GRADIENT, 1, &error));
    struct linear *linear = pass.list[0].linear;
    assert_null(linear->weight.gradient);
    size_t n = pass.list[0].rows * pass.list[0].columns;
    double norm = 0, loss[2];
    for (size_t i = 0; i < n; i++)
        norm += pass.list[0].values[i] * pass.list[0].values[i];
    norm = sqrt(norm);
    assert_true(norm > 1e-4);
    float *weight = small_run_values(run, linear->weight.value, n), *moved = small_run_keep(malloc(n * sizeof *moved));
    struct parameters *group = e->model.clip->parameters;
    for (int side = 0; side < 2; side++) {
        struct layer_pass again;
        float read;
        for (size_t i = 0; i < n; i++)
            moved[i] = weight[i] + (float)((side ? -0.005 : 0.005) / norm * pass.list[0].values[i]);
        must(group->backend->ops->upload(group->backend,
                                         parameters_write(group, (size_t)(linear->weight.value - group->values), n),
                                         moved, n * sizeof *moved, &error));
        must(group->backend->ops->zero(group->backend, e->model.loss, LOSS_TERMS * sizeof read, &error));
        must(layer_pass_run(&again, &e->method, &e->data.tasks[0], LAYER_COVARIANCE, 1, &error));
        must(group->backend->ops->download(group->backend, &read, e->model.loss, sizeof read, &error));
        loss[side] = (double)read;
        layer_pass_free(&again);
    }
    double numeric = (loss[0] - loss[1]) / 0.01;
    if (!(fabs(numeric - norm) <= 0.03 * norm + 5e-4))
        fail_msg("gradient %g along itself, central difference %g", norm, numeric);
    layer_pass_free(&pass);
}

/* Nothing is learned at this rate: what is left is what the method does to the weights. */
RUN_TEST(starts_change_nothing, NULL)
{
    static const char *const names[] = {"method.name=keep_lora", "method.name=moram"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        small_run_reopen(run, 1,
                         WORDS(names[i], "delta.rank=4", "training.learning_rate=1e-30", "training.iterations=2"));
        const struct model *model = &run->experiment->model;
        float *before = whole_run_features(run), moved = 0;
        learn(run, 0);
        learn(run, 1);
        float *after = whole_run_features(run), *deltas = small_run_group(model->deltas->parameters);
        for (size_t k = 0; k < model->deltas->parameters->values_count; k++)
            moved = fmaxf(moved, fabsf(deltas[k]));
        for (size_t k = 0; k < model->clip->dimensions.embed; k++)
            if (!(fabsf(after[k] - before[k]) <= 1e-4f * (1 + fabsf(before[k]))))
                fail_msg("%s: feature %zu: %g, was %g", names[i], k, (double)after[k], (double)before[k]);
        assert_true(moved > 0.1f); /* there is a start */
    }
}

/* What is left of a gradient whose space is protected as a whole is rounding. */
TEST(keep_lora_trains_nothing_that_is_protected)
{
    double basis[] = {0.6, 0.8, -0.8, 0.6};
    float a[2], b[2];
    must(keep_lora_start(&(struct subspace){.n = 2, .rank = 2, .basis = basis}, (double[]){0.1, 0.3, 0.7, 0.9}, 2, 2, 1,
                         a, b, &error));
    assert_true(a[0] == 0 && a[1] == 0 && b[0] == 0 && b[1] == 0);
}

RUN_TEST(keep_lora_needs_square_matrices, "method.name=keep_lora", NULL)
{
    must_refuse(small_run_try(run, 1, WORDS("method.name=keep_lora", "delta.matrices=query,fc")), ERROR_ARGUMENT,
                "delta.matrices", "square", "fc");
}
