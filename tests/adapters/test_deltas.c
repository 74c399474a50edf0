/* Low-rank deltas: gradients, what is merged and what stands apart, and their file. */
#include "adapters/deltas.h"
#include "adapters/files/delta_file.h"
#include "adapters/gates/gate.h"
#include "tests/models/small.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANK = 4, TASKS = 3, ALL = (1 << DELTA_MATRICES) - 1 };

static const struct delta_settings everywhere = {.rank = RANK, .tasks = TASKS, .scale = 0.5f, .matrices = ALL};

static struct deltas *add_deltas(struct small *s, const struct delta_settings *settings)
{
    struct deltas *deltas;
    must(deltas_create(&deltas, s->clip, &s->d.memory, settings, PARAMETERS_TRAINED, &error));
    struct parameters *p = deltas->parameters;
    const float *values = draw(&s->d, p->values_count, 0.1f).host;
    must(s->d.ops->upload(s->d.backend, parameters_write_all(p), values, p->values_count * sizeof *values, &error));
    return deltas;
}

static void close_deltas(struct small *s, struct deltas *deltas)
{
    deltas_destroy(deltas);
    small_close(s);
}

/* Where the rows of a task begin. */
static size_t rows_of(const struct deltas *deltas, size_t parameter, size_t task)
{
    const struct parameter *p = &deltas->parameters->list[parameter];
    return p->offset + task * (p->size / TASKS);
}

static bool is_bf16(void)
{
    const char *precision = getenv("MTIL_TEST_PRECISION");
    return precision != NULL && strcmp(precision, "bf16") == 0;
}

static double *features(struct small *s, size_t *n)
{
    small_encode(s);
    size_t images = tensor_elements(&s->features[TOWER_IMAGE]), texts = tensor_elements(&s->features[TOWER_TEXT]);
    *n = images + texts;
    double *all = doubles(&s->d, NULL, *n);
    memcpy(all, doubles(&s->d, from_device(&s->d, s->features[TOWER_IMAGE].data, images * sizeof(float)), images),
           images * sizeof *all);
    memcpy(all + images, doubles(&s->d, from_device(&s->d, s->features[TOWER_TEXT].data, texts * sizeof(float)), texts),
           texts * sizeof *all);
    return all;
}

static double distance(const double *a, const double *b, size_t n)
{
    double apart = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        apart += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return sqrt(apart / size);
}

TEST(gradients_match_differences)
{
    static const struct delta_settings cases[] = {
        {.rank = RANK, .tasks = TASKS, .scale = 0.5f, .matrices = ALL},
        {.rank = RANK, .tasks = TASKS, .scale = 2, .matrices = 1U << DELTA_QUERY | 1U << DELTA_VALUE},
        {.rank = 2 * RANK,
         .tasks = TASKS,
         .scale = 1,
         .matrices = 1U << DELTA_KEY | 1U << DELTA_PROJ,
         .place = {.blocks = {.rule = BLOCKS_LAST, .n = 1}, .towers = ADAPT_IMAGE}}};
    if (is_bf16())
        skip(); /* differences are rounded away; the next test compares */
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int dropout = 0; dropout < 2; dropout++) {
            struct small s;
            small_open(&s, 2, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
            struct deltas *deltas = add_deltas(&s, &cases[c]);
            s.dropout = dropout ? 0.2f : 0;
            must(deltas_begin_task(deltas, 2, 1, DELTA_A | DELTA_B, &error));
            small_loss(&s, true);
            for (size_t i = 0; i < deltas->count; i++) {
                const struct delta_entry *e = &deltas->list[i];
                const size_t numbers[] = {e->a, e->b};
                for (int half = 0; half < 2; half++) {
                    const struct parameter *p = &deltas->parameters->list[numbers[half]];
                    size_t n = p->size / TASKS, at = rows_of(deltas, numbers[half], 2);
                    small_check_gradient(&s, p->name, parameters_write(deltas->parameters, at, n),
                                         deltas->parameters->gradients + at, n);
                }
            }
            close_deltas(&s, deltas);
        }
}

/* Those of all tasks in use have gradients; the model is that of a weight with every product times its magnitude. */
TEST(magnitudes_scale_the_tasks)
{
    struct delta_settings settings = everywhere;
    struct small s;
    size_t n;
    settings.gate = &gate_magnitude;
    small_open(&s, 2, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    struct deltas *deltas = add_deltas(&s, &settings);
    must(deltas_begin_task(deltas, 1, 0, DELTA_A | DELTA_B | DELTA_MAGNITUDE, &error));
    float magnitudes[] = {0.7f, -1.5f};
    for (size_t i = 0; i < deltas->count; i++)
        for (size_t k = 0; k < 2; k++)
            must(deltas_write(deltas, &deltas->list[i], DELTA_MAGNITUDE, k, &magnitudes[k], &error));
    if (!is_bf16()) {
        small_loss(&s, true);
        for (size_t i = 0; i < deltas->count; i++) {
            const size_t numbers[] = {deltas->list[i].a, deltas->list[i].b, deltas->list[i].magnitude};
            for (int part = 0; part < 3; part++) {
                const struct parameter *p = &deltas->parameters->list[numbers[part]];
                size_t count = p->size / TASKS * (part < 2 ? 1 : 2),
                       at = rows_of(deltas, numbers[part], part < 2 ? 1 : 0);
                small_check_gradient(&s, p->name, parameters_write(deltas->parameters, at, count),
                                     deltas->parameters->gradients + at, count);
            }
        }
    }
    double *gated = features(&s, &n), *kept = malloc(n * sizeof *kept);
    memcpy(kept, gated, n * sizeof *kept);
    must(deltas_begin_task(deltas, 2, 2, 0,
                           &error)); /* of the task in use none is wanted: without the gate it is added */
    for (size_t i = 0; i < deltas->count; i++) {
        must(deltas_add_product(deltas, &deltas->list[i], 0, magnitudes[0] - 1, &error));
        must(deltas_add_product(deltas, &deltas->list[i], 1, magnitudes[1] - 1, &error));
        deltas->each[i].rows = 0;
    }
    assert_true(distance(features(&s, &n), kept, n) < (is_bf16() ? 0.02 : 1e-5));
    free(kept);
    close_deltas(&s, deltas);
}

/* With W′ = W + scale · Bᵀ A: dA = scale · B dW′, dB = scale · A dW′ᵀ. */
TEST(gradients_are_those_of_the_weight)
{
    struct small s;
    small_open(&s, 3, PARAMETERS_TRAINED, ACTIVATION_GELU);
    struct deltas *deltas = add_deltas(&s, &everywhere);
    must(deltas_begin_task(deltas, 1, 0, DELTA_A | DELTA_B, &error));
    small_loss(&s, true);
    for (size_t i = 0; i < deltas->count; i++) {
        const struct delta_entry *e = &deltas->list[i];
        size_t a_at = rows_of(deltas, e->a, 1), b_at = rows_of(deltas, e->b, 1);
        float *a = malloc(RANK * e->in * sizeof *a), *b = malloc(RANK * e->out * sizeof *b);
        must(deltas_read(deltas, e, DELTA_A, 1, a, &error));
        must(deltas_read(deltas, e, DELTA_B, 1, b, &error));
        const float *dw =
            from_device(&s.d, e->linear->weight.gradient + e->delta->first * e->in, e->out * e->in * sizeof *dw);
        double *da = doubles(&s.d, NULL, RANK * e->in), *db = doubles(&s.d, NULL, RANK * e->out);
        double largest = 0;
        for (size_t r = 0; r < RANK; r++)
            for (size_t o = 0; o < e->out; o++)
                for (size_t k = 0; k < e->in; k++) {
                    da[r * e->in + k] += 0.5 * (double)b[r * e->out + o] * (double)dw[o * e->in + k];
                    db[r * e->out + o] += 0.5 * (double)a[r * e->in + k] * (double)dw[o * e->in + k];
                }
        for (size_t k = 0; k < RANK * e->in; k++)
            largest = fmax(largest, fabs(da[k]));
        assert_true(largest > 1e-5);
        const float *found[] = {deltas->parameters->gradients + a_at, deltas->parameters->gradients + b_at};
        const double *expected[] = {da, db};
        const size_t n[] = {RANK * e->in, RANK * e->out};
        for (int half = 0; half < 2; half++) { /* expect_close takes magnitudes below 1 for 1 */
            const float *f = from_device(&s.d, found[half], n[half] * sizeof *f);
            double apart = 0, size = 0;
            for (size_t k = 0; k < n[half]; k++) {
                apart += ((double)f[k] - expected[half][k]) * ((double)f[k] - expected[half][k]);
                size += expected[half][k] * expected[half][k];
            }
            if (!(sqrt(apart) <= (is_bf16() ? 0.02 : 1e-5) * sqrt(size)))
                fail_msg("block %zu, %s, half %d: %g apart of %g", e->block, delta_matrix_names[e->matrix], half,
                         sqrt(apart), sqrt(size));
        }
        free(a);
        free(b);
    }
    close_deltas(&s, deltas);
}

/* Only the rows of the task, and only the halves that are asked for, get gradients and updates. */
TEST(what_is_not_trained_stays)
{
    static const struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1};
    struct small s;
    small_open(&s, 1, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    struct deltas *deltas = add_deltas(&s, &everywhere);
    struct parameters *p = deltas->parameters;
    must(deltas_begin_task(deltas, 1, 0, DELTA_B, &error));
    const float *before = from_device(&s.d, p->values, p->values_count * sizeof *before);
    small_loss(&s, true);
    must(parameters_step(p, s.state, &rule, &error));
    const float *after = from_device(&s.d, p->values, p->values_count * sizeof *after);
    for (size_t i = 0; i < deltas->count; i++)
        for (size_t k = 0; k < TASKS; k++) {
            const struct delta_entry *e = &deltas->list[i];
            size_t a = rows_of(deltas, e->a, k), b = rows_of(deltas, e->b, k);
            assert_memory_equal(before + a, after + a, RANK * e->in * sizeof *after);
            assert_true((memcmp(before + b, after + b, RANK * e->out * sizeof *after) != 0) == (k == 1));
        }
    close_deltas(&s, deltas);
}

TEST(merged_and_apart_compute_the_same)
{
    struct small s;
    size_t n;
    small_open(&s, 2, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    double *plain = features(&s, &n);
    struct deltas *deltas = add_deltas(&s, &everywhere);
    assert_memory_equal(features(&s, &n), plain, n * sizeof *plain); /* nothing is in use yet */
    must(deltas_begin_task(deltas, 2, 0, 0, &error));
    double *apart = features(&s, &n);
    assert_true(distance(apart, plain, n) > 0.05);
    must(deltas_begin_task(deltas, 2, 2, 0, &error));
    assert_true(distance(features(&s, &n), apart, n) < (is_bf16() ? 0.02 : 1e-5));
    must(deltas_begin_task(deltas, 2, 2, 0, &error)); /* as when a run goes on: nothing is merged again */
    assert_true(distance(features(&s, &n), apart, n) < (is_bf16() ? 0.02 : 1e-5));
    close_deltas(&s, deltas);
}

/* Fresh deltas change no bit, whatever the precision. */
TEST(they_start_as_nothing)
{
    struct small s;
    size_t n;
    small_open(&s, 2, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    double *plain = features(&s, &n);
    struct deltas *deltas;
    must(deltas_create(&deltas, s.clip, &s.d.memory, &everywhere, PARAMETERS_TRAINED, &error));
    must(deltas_initialize(deltas, 1, &error));
    must(deltas_begin_task(deltas, 0, 0, DELTA_A | DELTA_B, &error));
    assert_memory_equal(features(&s, &n), plain, n * sizeof *plain);
    deltas_destroy(deltas);
    assert_memory_equal(features(&s, &n), plain, n * sizeof *plain);
    small_close(&s);
}

TEST(a_file_gives_the_bits_of_the_run)
{
    struct small s;
    size_t n;
    char path[64];
    snprintf(path, sizeof path, "/tmp/mtil_deltas_%ld.safetensors", (long)getpid());
    small_open(&s, 2, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    struct deltas *deltas = add_deltas(&s, &everywhere);
    must(deltas_begin_task(deltas, 2, 1, DELTA_A | DELTA_B, &error));
    double *expected = features(&s, &n), *kept = malloc(n * sizeof *kept);
    memcpy(kept, expected, n * sizeof *kept);
    const struct group_extra extra = {.metadata = &(struct safetensors_metadata){"model", "small"},
                                      .metadata_count = 1};
    must(deltas_save(deltas, &extra, path, &error));
    close_deltas(&s, deltas);
    struct safetensors *file;
    must(safetensors_open(&file, path, &error));
    assert_true(delta_file_is(file));
    assert_string_equal(safetensors_metadata_value(file, "model"), "small");
    small_open(&s, 1, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    must(deltas_open(&deltas, s.clip, &s.d.memory, file, &error));
    assert_memory_equal(features(&s, &n), kept, n * sizeof *kept);
    safetensors_close(file);
    free(kept);
    close_deltas(&s, deltas);
    unlink(path);
}

TEST(bits_do_not_depend_on_threads)
{
    uint64_t bits[3];
    for (size_t threads = 1; threads <= 3; threads++) {
        struct small s;
        small_open(&s, threads, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
        struct deltas *deltas = add_deltas(&s, &everywhere);
        must(deltas_begin_task(deltas, 2, 1, DELTA_A | DELTA_B, &error));
        small_loss(&s, true);
        digest(&s.d, deltas->parameters->gradients, deltas->parameters->values_count * sizeof(float));
        bits[threads - 1] = s.d.bits;
        close_deltas(&s, deltas);
        assert_true(bits[threads - 1] == bits[0]);
    }
}
