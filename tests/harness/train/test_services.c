/* What methods are made of: teacher, distillation, mean of weights, penalty. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/train/services/average.h"
#include "harness/train/services/distillation.h"
#include "harness/train/services/penalty.h"
#include "harness/train/services/teacher.h"
#include "tests/models/small.h"

enum { TEXTS = 5, EMBED = 8 };

static struct tensor images_of(const struct small *s)
{
    return (struct tensor){.data = s->images.device, .type = TENSOR_F32, .rank = 4, .shape = {SMALL_IMAGES, 3, 12, 12}};
}

static float *values_of(struct small *s)
{
    const struct parameters *group = s->clip->parameters;
    return from_device(&s->d, group->values, group->values_count * sizeof(float));
}

/* What training would do to it. */
static void move_student(struct small *s)
{
    struct parameters *group = s->clip->parameters;
    float *values = values_of(s);
    const float *noise = draw(&s->d, group->values_count, 0.05f).host;
    for (size_t i = 0; i < group->values_count; i++)
        values[i] += noise[i];
    must(s->d.ops->upload(s->d.backend, parameters_write_all(group), values, group->values_count * sizeof *values,
                          &error));
}

/* --- Distillation --- */

struct school {
    struct small s;
    struct teacher teacher;
    struct tensor images, teacher_images, teacher_texts;
    struct distillation distillation;
};

static void school_open(struct school *c, size_t threads)
{
    small_open(&c->s, threads, PARAMETERS_TRAINED, ACTIVATION_QUICK_GELU);
    struct device *d = &c->s.d;
    struct operand texts = draw(d, TEXTS * EMBED, 1.0f);
    c->images = images_of(&c->s);
    c->teacher = (struct teacher){0};
    must(teacher_open(&c->teacher, c->s.clip, &d->memory, &error));
    move_student(&c->s);
    must(teacher_images(&c->teacher, &c->images, &d->memory, &c->teacher_images, &error));
    c->teacher_texts = (struct tensor){.data = texts.device, .rank = 2, .shape = {TEXTS, EMBED}};
    must(d->ops->normalize(
        d->backend,
        &(struct normalize){.x = matrix_rows(texts.device, TEXTS, EMBED), .y = matrix_rows(texts.device, TEXTS, EMBED)},
        &error));
    c->distillation = (struct distillation){.student = c->s.clip,
                                            .images = &c->images,
                                            .teacher_images = &c->teacher_images,
                                            .teacher_texts = &c->teacher_texts,
                                            .scale = 7,
                                            .temperature = 2,
                                            .image_weight = 1,
                                            .text_weight = 1,
                                            .loss = c->s.loss};
}

static void school_close(struct school *c)
{
    teacher_close(&c->teacher);
    small_close(&c->s);
}

static double loss_of(struct school *c)
{
    float loss;
    arena_reset(&c->s.step);
    must(c->s.d.ops->zero(c->s.d.backend, c->s.loss, sizeof *c->s.loss, &error));
    must(distillation_add(&c->distillation, &c->s.step, &error));
    assert_int_equal(c->s.step.used, 0);
    must(c->s.d.ops->download(c->s.d.backend, &loss, c->s.loss, sizeof loss, &error));
    return (double)loss;
}

/* log softmax of n values at a distance, divided by a temperature. */
static void log_softmax(const double *x, size_t n, size_t stride, double temperature, double *out)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += exp(x[j * stride] / temperature);
    for (size_t j = 0; j < n; j++)
        out[j] = x[j * stride] / temperature - log(sum);
}

/* The mean cross-entropy of softmax(s) with softmax(t) along rows (stride 1) or columns. */
static double cross_entropy(const double *t, const double *s, bool rows, double temperature)
{
    size_t outer = rows ? SMALL_IMAGES : TEXTS, inner = rows ? TEXTS : SMALL_IMAGES, step = rows ? TEXTS : 1,
           stride = rows ? 1 : TEXTS;
    double total = 0, p[TEXTS], q[TEXTS];
    for (size_t i = 0; i < outer; i++) {
        log_softmax(t + i * step, inner, stride, temperature, p);
        log_softmax(s + i * step, inner, stride, temperature, q);
        for (size_t j = 0; j < inner; j++)
            total -= exp(p[j]) * q[j];
    }
    return total / (double)outer;
}

static void similarities(struct school *c, const struct tensor *images, double *out)
{
    const float *a = from_device(&c->s.d, images->data, SMALL_IMAGES * EMBED * sizeof *a),
                *b = from_device(&c->s.d, c->teacher_texts.data, TEXTS * EMBED * sizeof *b);
    for (size_t i = 0; i < SMALL_IMAGES; i++)
        for (size_t j = 0; j < TEXTS; j++) {
            double norm = 0, sum = 0;
            for (size_t k = 0; k < EMBED; k++) {
                norm += (double)a[i * EMBED + k] * (double)a[i * EMBED + k];
                sum += (double)a[i * EMBED + k] * (double)b[j * EMBED + k];
            }
            out[i * TEXTS + j] = (double)c->distillation.scale * sum / sqrt(norm);
        }
}

TEST(distillation_is_the_formula)
{
    struct school c;
    double t[SMALL_IMAGES * TEXTS], s[SMALL_IMAGES * TEXTS];
    school_open(&c, 2);
    similarities(&c, &c.teacher_images, t);
    small_encode(&c.s);
    similarities(&c, &c.s.features[TOWER_IMAGE], s);
    for (int both = 0; both < 2; both++) {
        c.distillation.temperature = both ? 2 : 3;
        c.distillation.text_weight = both ? 0.5f : 0;
        double temperature = (double)c.distillation.temperature,
               expected = temperature * temperature *
                          (cross_entropy(t, s, true, temperature) +
                           (double)c.distillation.text_weight * cross_entropy(t, s, false, temperature)),
               found = loss_of(&c);
        if (!(fabs(found - expected) < 1e-4))
            fail_msg("expected %.7f, found %.7f", expected, found);
    }
    school_close(&c);
}

/* Along the gradient's own direction; the text tower has none. */
TEST(distillation_trains_the_image_tower_alone)
{
    struct school c;
    double loss[2], squares = 0;
    school_open(&c, 2);
    loss_of(&c);
    struct parameters *group = c.s.clip->parameters;
    const float *slope = from_device(&c.s.d, group->gradients, group->values_count * sizeof *slope),
                *values = values_of(&c.s);
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        double own = 0;
        for (size_t k = 0; k < p->size; k++)
            own += pow((double)slope[p->offset + k], 2);
        if ((own > 0) != (strncmp(p->name, "visual.", 7) == 0))
            fail_msg("%s has a gradient of norm %g", p->name, sqrt(own));
        squares += own;
    }
    float *moved = values_of(&c.s);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < group->values_count; i++)
            moved[i] = values[i] + (side == 0 ? 0.002f : -0.002f) / (float)sqrt(squares) * slope[i];
        must(c.s.d.ops->upload(c.s.d.backend, parameters_write_all(group), moved, group->values_count * sizeof *moved,
                               &error));
        loss[side] = loss_of(&c);
    }
    double numeric = (loss[0] - loss[1]) / 0.004;
    if (!(fabs(numeric - sqrt(squares)) < 0.01 * sqrt(squares)))
        fail_msg("gradient %g along itself, central difference %g", sqrt(squares), numeric);
    school_close(&c);
}

TEST(bits_do_not_depend_on_threads)
{
    uint64_t bits[3];
    for (size_t threads = 1; threads <= 3; threads++) {
        struct school c;
        school_open(&c, threads);
        loss_of(&c);
        digest(&c.s.d, c.s.clip->parameters->gradients, c.s.clip->parameters->values_count * sizeof(float));
        bits[threads - 1] = c.s.d.bits;
        school_close(&c);
        assert_true(bits[threads - 1] == bits[0]);
    }
}

/* --- Teacher --- */

TEST(teacher_stays_until_it_copies)
{
    struct small s;
    struct teacher teacher = {0};
    struct tensor features, images;
    small_open(&s, 2, PARAMETERS_TRAINED, ACTIVATION_QUICK_GELU);
    images = images_of(&s);
    must(teacher_open(&teacher, s.clip, &s.d.memory, &error));
    const float *at_first = values_of(&s);
    move_student(&s);
    const struct parameters *group = teacher.clip->parameters;
    expect_floats(&s.d, "teacher", group->values, at_first, group->values_count);
    must(teacher_copy(&teacher, s.clip, &error));
    expect_floats(&s.d, "teacher", group->values, values_of(&s), group->values_count);
    small_encode_images(&s, 0, SMALL_IMAGES, &features);
    double *expected = doubles(&s.d, from_device(&s.d, features.data, tensor_bytes(&features)), SMALL_IMAGES * EMBED);
    for (size_t i = 0; i < SMALL_IMAGES; i++) {
        double norm = 0;
        for (size_t k = 0; k < EMBED; k++)
            norm += expected[i * EMBED + k] * expected[i * EMBED + k];
        for (size_t k = 0; k < EMBED; k++)
            expected[i * EMBED + k] /= sqrt(norm);
    }
    must(teacher_images(&teacher, &images, &s.step, &features, &error));
    expect_close(&s.d, "image features", features.data, expected, SMALL_IMAGES * EMBED, 1e-5);
    teacher_close(&teacher);
    small_close(&s);
}

/* More texts than are encoded at a time have the features that each has alone. */
TEST(many_texts_are_each_their_own)
{
    enum { MANY = 600, CONTEXT = 6 };
    struct small s;
    struct teacher teacher = {0};
    struct tensor all, one;
    int32_t *tokens = calloc(MANY * CONTEXT, sizeof *tokens);
    small_open(&s, 2, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    must(teacher_open(&teacher, s.clip, &s.d.memory, &error));
    for (int32_t i = 0; i < MANY; i++)
        memcpy(tokens + i * CONTEXT, (int32_t[]){9, i % 9, i / 9 % 9, i / 81 % 9, 10, 0}, CONTEXT * sizeof *tokens);
    must(tensor_take(&all, &s.d.memory, TENSOR_F32, "all", 2, (size_t[]){MANY, EMBED}, &error));
    must(tensor_take(&one, &s.d.memory, TENSOR_F32, "one", 2, (size_t[]){1, EMBED}, &error));
    must(teacher_texts(&teacher, tokens, &all, &s.step, &error));
    assert_int_equal(s.step.used, 0);
    const float *features = from_device(&s.d, all.data, tensor_bytes(&all));
    const int looked_at[] = {0, 255, 256, 511, 512, MANY - 1};
    for (size_t i = 0; i < sizeof looked_at / sizeof *looked_at; i++) {
        must(teacher_texts(&teacher, tokens + looked_at[i] * CONTEXT, &one, &s.step, &error));
        expect_close(&s.d, "text", one.data, doubles(&s.d, features + looked_at[i] * EMBED, EMBED), EMBED, 1e-5);
    }
    free(tokens);
    teacher_close(&teacher);
    small_close(&s);
}

/* --- Weights --- */

enum { VALUES = 100 };

/* A group of one tensor and a few values in it. */
static struct parameters *group_of(struct device *d, const struct operand *values)
{
    struct parameters *group;
    size_t index;
    parameters_create(&group, d->backend);
    must(parameters_add(group, "w", 1, (size_t[]){VALUES}, 1, 0, &index, &error));
    must(parameters_allocate(group, &d->memory, PARAMETERS_TRAINED, &error));
    must(d->ops->copy(d->backend, parameters_write_all(group), values->device, VALUES * sizeof(float), &error));
    return group;
}

static void move_to(struct device *d, struct parameters *group, const float *values)
{
    must(d->ops->upload(d->backend, parameters_write_all(group), values, VALUES * sizeof *values, &error));
}

DEVICE_TEST(weights_are_averaged)
{
    struct operand w[3] = {draw(d, VALUES, 1.0f), draw(d, VALUES, 1.0f), draw(d, VALUES, 1.0f)};
    w[1].host[7] = w[2].host[7] = w[0].host[7];
    struct parameters *group = group_of(d, &w[0]);
    struct average average = {0};
    double mean[VALUES], mixed[VALUES];
    must(average_open(&average, group, &d->memory, &error));
    assert_int_equal(average.count, 0);
    must(average_start(&average, group, &error));
    for (size_t i = 1; i < 3; i++) {
        move_to(d, group, w[i].host);
        must(average_add(&average, group, &error));
    }
    assert_int_equal(average.count, 3);
    for (size_t i = 0; i < VALUES; i++) {
        mean[i] = ((double)w[0].host[i] + (double)w[1].host[i] + (double)w[2].host[i]) / 3;
        mixed[i] = 0.8 * (double)w[2].host[i] + 0.2 * mean[i];
    }
    expect_close(d, "mean", average.values, mean, VALUES, 2e-7);
    expect_floats(d, "a value that stays", average.values + 7, w[0].host + 7, 1);
    must(average_apply(&average, group, 0.8f, &error));
    expect_close(d, "mixture", group->values, mixed, VALUES, 2e-7);
    expect_floats(d, "a value that stays", group->values + 7, w[0].host + 7, 1);
    assert_int_equal(average.count, 0);
    must(average_apply(&average, group, 0, &error));
    expect_close(d, "the mean as weights", group->values, mean, VALUES, 2e-7);
    parameters_destroy(group);
}

DEVICE_TEST(weights_are_held_to_an_anchor)
{
    struct operand w[2] = {draw(d, VALUES, 1.0f), draw(d, VALUES, 1.0f)}, importance = draw(d, VALUES, 1.0f);
    struct parameters *group = group_of(d, &w[0]);
    struct average start;
    float *loss = room(d, 2 * sizeof *loss);
    double expected[2] = {0}, gradient[VALUES];
    must(average_open(&start, group, &d->memory, &error));
    must(average_start(&start, group, &error));
    move_to(d, group, w[1].host);
    must(penalty_add(group, start.values, NULL, 0.5f, loss, &error));
    must(penalty_add(group, start.values, importance.device, 0.5f, loss + 1, &error));
    for (size_t i = 0; i < VALUES; i++) {
        double difference = (double)w[1].host[i] - (double)w[0].host[i];
        expected[0] += 0.5 * difference * difference;
        expected[1] += 0.5 * (double)importance.host[i] * difference * difference;
        gradient[i] = difference * (1 + (double)importance.host[i]);
    }
    expect_close(d, "loss", loss, expected, 2, 1e-6);
    expect_close(d, "gradient", group->gradients, gradient, VALUES, 1e-6);
    parameters_destroy(group);
}
