/* Methods on low-rank deltas: what defines each of them, and several GPUs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/methods/methods.h"
#include "harness/train/services/layer_pass.h"
#include "harness/train/trainer.h"
#include "tests/harness/small_run.h"

enum { ITERATIONS = 6, RANK = 4 };

static size_t counted;
static double losses[ITERATIONS];

static bool always(void *context, size_t iteration, size_t iterations)
{
    (void)context, (void)iteration, (void)iterations;
    return true;
}

static status after(void *context, const struct step_report *report, struct error *failure)
{
    (void)context, (void)failure;
    losses[counted++] = report->loss;
    return OK;
}

static void open_run(struct small_run *run, bool first, const char *method, const char *more, size_t gpus)
{
    char name[64], count[32];
    snprintf(name, sizeof name, "method.name=%s", method);
    snprintf(count, sizeof count, "run.gpus=%zu", gpus);
    const char *const words[] = {name, count, "delta.rank=4", "training.learning_rate=5e-3", more, NULL};
    if (first)
        small_run_open(run, 1, words);
    else
        small_run_reopen(run, 1, words);
}

static void train(struct small_run *run, size_t task)
{
    struct run *e = run->experiment;
    counted = 0;
    must(train_task(
        &(struct training){.run = &e->method, .task = &e->data.tasks[task], .wants_loss = always, .after = after},
        &error));
    assert_int_equal(counted, ITERATIONS);
}

static float *part_of(const struct small_run *run, size_t entry, enum delta_part part, size_t task, size_t *n)
{
    const struct deltas *d = run->experiment->model.deltas;
    const struct delta_entry *e = &d->list[entry];
    *n = part == DELTA_MAGNITUDE ? 1 : RANK * (part == DELTA_A ? e->in : e->out);
    float *values = malloc(*n * sizeof *values);
    must(deltas_read(d, e, part, task, values, &error));
    return values;
}

/* The same numbers, but for the order of sums. */
TEST(several_gpus_train_together)
{
    for (size_t i = 0; method_at(i) != NULL; i++) {
        struct options *options;
        must(options_create(&options, method_at(i)->options, &error));
        bool deltas = method_groups(method_at(i), options) == GROUP_DELTAS;
        options_destroy(options);
        if (!deltas)
            continue;
        struct small_run run;
        double one[2][ITERATIONS];
        for (size_t gpus = 1; gpus <= 2; gpus++) {
            open_run(&run, gpus == 1, method_at(i)->name, NULL, gpus);
            for (size_t task = 0; task < 2; task++) {
                train(&run, task);
                for (size_t k = 0; k < ITERATIONS; k++)
                    if (gpus == 1)
                        one[task][k] = losses[k];
                    else if (!(fabs(losses[k] - one[task][k]) <= 2e-3))
                        fail_msg("%s, task %zu, iteration %zu: loss %.6f on one, %.6f on two", method_at(i)->name, task,
                                 k + 1, one[task][k], losses[k]);
            }
        }
        small_run_close(&run);
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
            for (size_t s = 0; s < RANK; s++) {
                double product = 0;
                for (size_t k = 0; k < in; k++)
                    product += (double)a[r * in + k] * (double)b[s * in + k];
                sum += fabs(product);
            }
        free(a);
        free(b);
    }
    return sum;
}

/* Training with lambda brings A closer to being orthogonal, and the loss has the term. */
TEST(o_lora_parts_the_tasks)
{
    struct small_run run;
    double apart[2], first[2];
    for (int with = 0; with < 2; with++) {
        open_run(&run, with == 0, "o_lora", with ? "method.lambda=0.5" : "method.lambda=0", 1);
        train(&run, 0);
        double before = orthogonality(&run);
        train(&run, 1);
        apart[with] = orthogonality(&run);
        first[with] = losses[0] - (with ? 0.5 * before : 0);
    }
    assert_true(apart[1] < 0.8 * apart[0]);
    assert_true(fabs(first[1] - first[0]) < 1e-4);
    small_run_close(&run);
}

/* A has orthonormal rows / √3, stays, and sees no more energy of the first task's inputs than is left unprotected. */
TEST(inf_lora_designs_a)
{
    struct small_run run;
    struct layer_pass pass;
    open_run(&run, true, "inf_lora", "method.share_first=0.99", 1);
    struct run *e = run.experiment;
    struct deltas *d = e->model.deltas;
    train(&run, 0);
    must(deltas_begin_task(d, 0, 0, 0, &error));
    must(layer_pass_run(&pass, &e->method, &e->data.tasks[0], LAYER_COVARIANCE, 0, &error));
    train(&run, 1);
    for (size_t i = 0, layer = 0; i < d->count; i++) {
        size_t n, in = d->list[i].in;
        float *a = part_of(&run, i, DELTA_A, 1, &n);
        layer += d->list[i].linear != pass.list[layer].linear;
        const double *c = pass.list[layer].values;
        double seen = 0, all = 0, most = 0;
        for (size_t r = 0; r < RANK; r++)
            for (size_t s = 0; s < RANK; s++) {
                double product = 0;
                for (size_t k = 0; k < in; k++)
                    product += (double)a[r * in + k] * (double)a[s * in + k];
                assert_true(fabs(product - (r == s ? 1.0 / 3 : 0)) < 1e-5);
            }
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
        free(a);
    }
    layer_pass_free(&pass);
    small_run_close(&run);
}

/* After a task its direction has norm 1, and the model is what was trained. */
TEST(sd_lora_parts_direction_and_magnitude)
{
    struct small_run run;
    open_run(&run, true, "sd_lora", NULL, 1);
    const struct deltas *d = run.experiment->model.deltas;
    train(&run, 0);
    for (size_t i = 0; i < d->count; i++) {
        size_t n;
        for (int half = 0; half < 2; half++) {
            float *values = part_of(&run, i, half ? DELTA_B : DELTA_A, 0, &n);
            double norm = 0;
            for (size_t k = 0; k < n; k++)
                norm += (double)values[k] * (double)values[k];
            assert_true(fabs(norm - 1) < 1e-5);
            free(values);
        }
    }
    size_t n;
    float *before = part_of(&run, 0, DELTA_A, 0, &n), *magnitude = part_of(&run, 0, DELTA_MAGNITUDE, 0, &n);
    train(&run, 1);
    float *now = part_of(&run, 0, DELTA_MAGNITUDE, 0, &n), *later = part_of(&run, 0, DELTA_A, 0, &n);
    assert_memory_equal(before, later, n * sizeof *later);
    assert_true(*now != *magnitude);
    free(before), free(magnitude), free(now), free(later);
    small_run_close(&run);
}

/* The gradient of a whole weight is the change of the loss. */
TEST(the_pass_gives_the_gradient_of_a_weight)
{
    struct small_run run;
    struct layer_pass pass;
    open_run(&run, true, "lora", NULL, 1);
    struct run *e = run.experiment;
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
    float *weight = small_run_values(&run, linear->weight.value, n), *moved = malloc(n * sizeof *moved);
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
    free(weight);
    free(moved);
    layer_pass_free(&pass);
    small_run_close(&run);
}
