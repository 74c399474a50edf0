/* Low-rank deltas: gradients, what is merged and what stands apart, and their file. */
#include "adapters/deltas.h"
#include "tests/models/clip/groups.h"
#include "tests/models/files/tensor_set.h"

#include <math.h>
#include <string.h>

enum { RANK = 4, TASKS = 3, ALL = (1 << DELTA_MATRICES) - 1, FEATURES = (SMALL_IMAGES + SMALL_PROMPTS) * 8 };

static const struct delta_settings everywhere = {.rank = RANK, .tasks = TASKS, .scale = 0.5f, .matrices = ALL};

static struct deltas *add_deltas(struct small *s, const struct delta_settings *settings)
{
    struct deltas *deltas;
    must(deltas_create(&deltas, s->clip, &s->d.memory, settings, PARAMETERS_TRAINED, &error));
    group_draw(&s->d, deltas->parameters, 0.1f);
    return deltas;
}

/* Where the rows of a task begin, and how many values they are. */
static size_t rows_of(const struct deltas *deltas, size_t parameter, size_t task, size_t *n)
{
    const struct parameter *p = &deltas->parameters->list[parameter];
    *n = p->size / TASKS;
    return p->offset + task * *n;
}

/* The gradients of the rows of so many tasks, from this one on. */
static void check_rows(struct small *s, struct deltas *deltas, size_t parameter, size_t task, size_t tasks)
{
    size_t n, at = rows_of(deltas, parameter, task, &n);
    small_check_gradient(s, deltas->parameters->list[parameter].name,
                         parameters_write(deltas->parameters, at, tasks * n), deltas->parameters->gradients + at,
                         tasks * n);
}

static void check_task(struct small *s, struct deltas *deltas, size_t task)
{
    for (size_t i = 0; i < deltas->count; i++) {
        check_rows(s, deltas, deltas->list[i].a, task, 1);
        check_rows(s, deltas, deltas->list[i].b, task, 1);
    }
}

/* In bf16 differences are rounded away; gradients_are_those_of_the_weight compares. */
static bool is_bf16(const struct small *s)
{
    return s->d.backend->precision == PRECISION_BF16;
}

static double tolerance(const struct small *s)
{
    return is_bf16(s) ? 0.02 : 1e-5;
}

/* Of both towers. */
static double *features(struct small *s)
{
    double *all = doubles(&s->d, NULL, FEATURES);
    size_t n = 0;
    for (int t = 0; t < TOWERS; t++) {
        const float *of_tower = small_features(s, (enum tower)t);
        for (size_t i = 0; i < tensor_elements(&s->features[t]); i++)
            all[n++] = (double)of_tower[i];
    }
    assert_int_equal(n, FEATURES);
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

SMALL_TEST(gradients_match_differences, 2)
{
    static const struct delta_settings cases[] = {
        {.rank = RANK, .tasks = TASKS, .scale = 0.5f, .matrices = ALL},
        {.rank = RANK, .tasks = TASKS, .scale = 2, .matrices = 1U << DELTA_QUERY | 1U << DELTA_VALUE},
        {.rank = 2 * RANK,
         .tasks = TASKS,
         .scale = 1,
         .matrices = 1U << DELTA_KEY | 1U << DELTA_PROJ,
         .place = {.blocks = {.rule = BLOCKS_LAST, .n = 1}, .towers = ADAPT_IMAGE}}};
    if (is_bf16(s))
        return;
    for (size_t c = 0; c < 2 * sizeof cases / sizeof *cases; c++) {
        struct deltas *deltas = add_deltas(s, &cases[c / 2]);
        s->dropout = c % 2 == 0 ? 0 : 0.2f;
        must(deltas_begin_task(deltas, 2, 1, DELTA_A | DELTA_B, &error));
        small_loss(s, true);
        check_task(s, deltas, 2);
        deltas_destroy(deltas);
    }
}

/* Those of all tasks in use have gradients; the model is that of a weight with every product times its magnitude. */
SMALL_TEST(magnitudes_scale_the_tasks, 2)
{
    struct delta_settings settings = everywhere;
    settings.gate = &gate_magnitude;
    struct deltas *deltas = add_deltas(s, &settings);
    must(deltas_begin_task(deltas, 1, 0, DELTA_A | DELTA_B | DELTA_MAGNITUDE, &error));
    float magnitudes[] = {0.7f, -1.5f};
    for (size_t i = 0; i < deltas->count; i++)
        for (size_t k = 0; k < 2; k++)
            must(deltas_write(deltas, &deltas->list[i], DELTA_MAGNITUDE, k, &magnitudes[k], &error));
    if (!is_bf16(s)) {
        small_loss(s, true);
        check_task(s, deltas, 1);
        for (size_t i = 0; i < deltas->count; i++)
            check_rows(s, deltas, deltas->list[i].magnitude, 0, 2);
    }
    double *gated = features(s);
    must(deltas_begin_task(deltas, 2, 2, 0,
                           &error)); /* of the task in use none is wanted: without the gate it is added */
    for (size_t i = 0; i < deltas->count; i++) {
        must(deltas_add_product(deltas, &deltas->list[i], 0, magnitudes[0] - 1, &error));
        must(deltas_add_product(deltas, &deltas->list[i], 1, magnitudes[1] - 1, &error));
        deltas->each[i].rows = 0;
    }
    assert_true(distance(features(s), gated, FEATURES) < tolerance(s));
    deltas_destroy(deltas);
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
        const enum delta_part parts[] = {DELTA_A, DELTA_B};
        const size_t numbers[] = {e->a, e->b};
        float *values[2];
        double *expected[2];
        for (int half = 0; half < 2; half++) {
            size_t n = RANK * (half == 0 ? e->in : e->out);
            values[half] = draw(&s.d, n, 1.0f).host;
            expected[half] = doubles(&s.d, NULL, n);
            must(deltas_read(deltas, e, parts[half], 1, values[half], &error));
        }
        const float *dw =
            from_device(&s.d, e->linear->weight.gradient + e->delta->first * e->in, e->out * e->in * sizeof *dw);
        for (size_t r = 0; r < RANK; r++)
            for (size_t o = 0; o < e->out; o++)
                for (size_t k = 0; k < e->in; k++) {
                    double half_slope = 0.5 * (double)dw[o * e->in + k];
                    expected[0][r * e->in + k] += half_slope * (double)values[1][r * e->out + o];
                    expected[1][r * e->out + o] += half_slope * (double)values[0][r * e->in + k];
                }
        for (int half = 0; half < 2; half++) { /* expect_close takes magnitudes below 1 for 1 */
            size_t n, at = rows_of(deltas, numbers[half], 1, &n);
            const float *gradient = from_device(&s.d, deltas->parameters->gradients + at, n * sizeof *gradient);
            double apart = distance(doubles(&s.d, gradient, n), expected[half], n);
            if (!(apart <= tolerance(&s))) /* nor may all be zero */
                fail_msg("block %zu, %s, half %d: %g apart", e->block, delta_matrix_names[e->matrix], half, apart);
        }
    }
    deltas_destroy(deltas);
    small_close(&s);
}

/* Only the rows of the task, and only the halves that are asked for, get gradients and updates. */
SMALL_TEST(what_is_not_trained_stays, 1)
{
    static const struct update_rule rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.1};
    struct deltas *deltas = add_deltas(s, &everywhere);
    must(deltas_begin_task(deltas, 1, 0, DELTA_B, &error));
    const float *before = small_values(s, deltas->parameters);
    small_loss(s, true);
    must(parameters_step(deltas->parameters, s->state, &rule, &error));
    const float *after = small_values(s, deltas->parameters);
    for (size_t i = 0; i < deltas->count; i++)
        for (size_t k = 0; k < TASKS; k++) {
            size_t n, a = rows_of(deltas, deltas->list[i].a, k, &n);
            assert_memory_equal(before + a, after + a, n * sizeof *after);
            size_t b = rows_of(deltas, deltas->list[i].b, k, &n);
            assert_int_equal(memcmp(before + b, after + b, n * sizeof *after) != 0, k == 1);
        }
    deltas_destroy(deltas);
}

SMALL_TEST(merged_and_apart_compute_the_same, 2)
{
    double *plain = features(s);
    struct deltas *deltas = add_deltas(s, &everywhere);
    assert_memory_equal(features(s), plain, FEATURES * sizeof *plain); /* nothing is in use yet */
    must(deltas_begin_task(deltas, 2, 0, 0, &error));
    double *apart = features(s);
    assert_true(distance(apart, plain, FEATURES) > 0.05);
    for (int again = 0; again < 2; again++) { /* as when a run goes on: nothing is merged again */
        must(deltas_begin_task(deltas, 2, 2, 0, &error));
        assert_true(distance(features(s), apart, FEATURES) < tolerance(s));
    }
    deltas_destroy(deltas);
}

/* Fresh deltas change no bit, whatever the precision. */
SMALL_TEST(they_start_as_nothing, 2)
{
    double *plain = features(s);
    struct deltas *deltas;
    must(deltas_create(&deltas, s->clip, &s->d.memory, &everywhere, PARAMETERS_TRAINED, &error));
    must(deltas_initialize(deltas, 1, &error));
    must(deltas_begin_task(deltas, 0, 0, DELTA_A | DELTA_B, &error));
    assert_memory_equal(features(s), plain, FEATURES * sizeof *plain);
    deltas_destroy(deltas);
    assert_memory_equal(features(s), plain, FEATURES * sizeof *plain);
}

/* Writes what deltas have, and opens it in a fresh model, which the caller closes with what was opened. */
static status save_and_open(const struct deltas *deltas, struct small *fresh, struct deltas **opened)
{
    const struct group_extra extra = {.metadata = &(struct safetensors_metadata){"model", "small"},
                                      .metadata_count = 1};
    must(deltas_save(deltas, &extra, test_path(), &error));
    struct safetensors *file = open_file(test_path());
    assert_true(delta_file_is(file));
    assert_string_equal(safetensors_metadata_value(file, "model"), "small");
    small_open(fresh, 1, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    status result = deltas_open(opened, fresh->clip, &fresh->d.memory, file, &error);
    safetensors_close(file);
    return result;
}

SMALL_TEST(a_file_gives_the_bits_of_the_run, 2)
{
    struct small fresh;
    struct deltas *deltas = add_deltas(s, &everywhere), *opened;
    must(deltas_begin_task(deltas, 2, 1, DELTA_A | DELTA_B, &error));
    double *expected = features(s);
    must(save_and_open(deltas, &fresh, &opened));
    assert_memory_equal(features(&fresh), expected, FEATURES * sizeof *expected);
    deltas_destroy(opened);
    small_close(&fresh);
    deltas_destroy(deltas);
}

/* With what each has beside A and B. That of importance comes last, as tasks are merged for it. */
SMALL_TEST(a_file_has_the_gates, 2)
{
    const struct delta_gate *const gates[] = {&gate_magnitude, &gate_by_input, &gate_importance};
    for (size_t g = 0; g < sizeof gates / sizeof *gates; g++) {
        struct delta_settings settings = everywhere;
        struct small fresh;
        struct deltas *opened;
        settings.gate = gates[g];
        struct deltas *deltas = add_deltas(s, &settings);
        must(deltas_begin_task(deltas, 2, gates[g] == &gate_importance ? 2 : 0, DELTA_A | DELTA_B, &error));
        double *expected = features(s);
        must(save_and_open(deltas, &fresh, &opened));
        assert_memory_equal(features(&fresh), expected, FEATURES * sizeof *expected);
        deltas_destroy(opened);
        small_close(&fresh);
        deltas_destroy(deltas);
    }
}

SMALL_TEST(scales_that_no_file_has_are_refused, 1)
{
    static const float scales[] = {0, NAN};
    struct deltas *deltas = add_deltas(s, &everywhere), *opened;
    must(deltas_begin_task(deltas, 0, 0, DELTA_A | DELTA_B, &error));
    for (int i = 0; i < 2; i++) {
        struct small fresh;
        deltas->settings.scale = scales[i];
        must_refuse(save_and_open(deltas, &fresh, &opened), ERROR_FORMAT, "delta_scale",
                    i == 0 ? "found 0" : "found nan");
        small_close(&fresh);
    }
    deltas_destroy(deltas);
}

SMALL_TEST(bits_do_not_depend_on_threads, ANY_THREADS)
{
    struct deltas *deltas = add_deltas(s, &everywhere);
    must(deltas_begin_task(deltas, 2, 1, DELTA_A | DELTA_B, &error));
    small_loss(s, true);
    digest_gradients(&s->d, deltas->parameters);
    deltas_destroy(deltas);
}
