#include "tests/models/clip/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static small_body test_body;

static uint64_t run_body(size_t threads)
{
    struct small s;
    small_open(&s, threads, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    test_body(&s);
    uint64_t bits = s.d.bits;
    small_close(&s);
    return bits;
}

void with_small(size_t threads, small_body body)
{
    test_body = body;
    if (threads == ANY_THREADS)
        expect_same_bits(run_body);
    else
        run_body(threads);
}

const float *small_encode_texts(struct small *s, const int32_t *tokens, size_t count, bool training)
{
    struct texts texts;
    struct tower_pass pass;
    struct tensor features;
    struct encoding encoding = {.arena = &s->step,
                                .training = training,
                                .hooks = s->hooks[TOWER_TEXT],
                                .router = s->router[TOWER_TEXT],
                                .state = s->state};
    arena_reset(&s->step);
    must(texts_create(&texts, s->clip, &s->step, tokens, count, &error));
    must(clip_encode_texts(s->clip, &encoding, &texts, &pass, &features, &error));
    return from_device(&s->d, features.data, tensor_bytes(&features));
}

void group_draw(struct device *d, struct parameters *group, float deviation)
{
    size_t n = group->values_count;
    must(
        d->ops->copy(d->backend, parameters_write_all(group), draw(d, n, deviation).device, n * sizeof(float), &error));
}

void digest_gradients(struct device *d, const struct parameters *group)
{
    digest(d, group->gradients, group->values_count * sizeof(float));
}

void check_gradients(struct device *d, const char *of, struct parameters *group, float (*loss)(void *context),
                     void *context)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        char name[128];
        snprintf(name, sizeof name, "%s%s", of, p->name);
        if (strncmp(p->name, "logit_", 6) != 0) /* the loss is given its value */
            check_gradient(d, name, parameters_write(group, p->offset, p->size), group->gradients + p->offset, p->size,
                           loss, context);
    }
}

static float loss_of(void *small)
{
    return small_loss(small, false);
}

void small_check_gradients(struct small *s, const char *of, struct parameters *group)
{
    check_gradients(&s->d, of, group, loss_of, s);
}

void expect_group(struct device *d, const struct parameters *group, const float *expected)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        expect_floats(d, p->name, group->values + p->offset, expected + p->offset, p->size);
    }
}

void expect_same_group(struct device *d, const struct parameters *found, const struct parameters *expected)
{
    assert_int_equal(found->count, expected->count);
    assert_int_equal(found->values_count, expected->values_count);
    for (size_t i = 0; i < found->count; i++)
        assert_string_equal(found->list[i].name, expected->list[i].name);
    expect_group(d, found, from_device(d, expected->values, expected->values_count * sizeof(float)));
}

static const struct parameter *shared_tensor(const struct parameters *shared, const char *name, size_t run)
{
    const struct parameter *own = parameters_find(shared, name);
    size_t before = strcspn(name, "0123456789");
    char leader[128], *rest;
    if (own != NULL)
        return own;
    size_t block = strtoul(name + before, &rest, 10);
    snprintf(leader, sizeof leader, "%.*s%zu%s", (int)before, name, block - block % run, rest);
    return parameters_find(shared, leader);
}

void group_spread(struct device *d, const struct parameters *shared, struct parameters *apart, size_t run)
{
    for (size_t i = 0; i < apart->count; i++) {
        const struct parameter *p = &apart->list[i], *from = shared_tensor(shared, p->name, run);
        if (from != NULL)
            must(d->ops->copy(d->backend, parameters_write(apart, p->offset, p->size), shared->values + from->offset,
                              p->size * sizeof(float), &error));
    }
}

void expect_sums_of_gradients(struct device *d, const struct parameters *shared, const struct parameters *apart,
                              size_t run, double tolerance)
{
    const float *each = from_device(d, apart->gradients, apart->values_count * sizeof *each);
    for (size_t i = 0; i < shared->count; i++) {
        const struct parameter *p = &shared->list[i];
        double *sum = doubles(d, NULL, p->size);
        for (size_t j = 0; j < apart->count; j++)
            if (shared_tensor(shared, apart->list[j].name, run) == p)
                for (size_t k = 0; k < p->size; k++)
                    sum[k] += (double)each[apart->list[j].offset + k];
        expect_close(d, p->name, shared->gradients + p->offset, sum, p->size, tolerance);
    }
}
