/* Learned tokens of both towers, as CoOp's context words and VPT's prompts: where they stand, and their gradients by differences. */
#include "tests/models/clip/groups.h"

#include <math.h>

enum { WORDS = 1, PROMPTS = 3 };

/* One set of tokens for all samples, in a group of their own. */
struct learned {
    struct parameters *group;
    size_t index, count, width;
    struct embedding_hook hook;
};

static struct matrix samples_of(const struct learned *l, const struct tensor *tokens)
{
    return matrix_rows(tokens->data, tokens->shape[0], l->count * l->width);
}

static status fill(void *state, const struct block_context *context, const struct tensor *tokens, struct error *failure)
{
    const struct learned *l = state;
    struct matrix out = samples_of(l, tokens),
                  same = matrix_rows(parameters_weight(l->group, l->index).value, out.rows, out.columns);
    struct tensor numbers;
    same.stride = 0;
    TRY(tensor_take(&numbers, context->arena, TENSOR_I32, "samples", 1, &out.rows, failure));
    TRY(context->backend->ops->arange(context->backend,
                                      &(struct arange){.count = out.rows, .step = 1, .out = numbers.data}, failure));
    return context->backend->ops->gather_rows(
        context->backend, &(struct gather_rows){.x = same, .out = out, .rows = numbers.data}, failure);
}

static status add_gradient(void *state, const struct block_context *context, const struct tensor *dtokens,
                           struct error *failure)
{
    const struct learned *l = state;
    return context->backend->ops->column_sum(
        context->backend,
        &(struct column_sum){.x = samples_of(l, dtokens), .out = parameters_weight(l->group, l->index).gradient},
        failure);
}

static void learned_open(struct learned *l, struct small *s, enum tower tower, size_t count)
{
    *l = (struct learned){.count = count, .width = s->clip->towers[tower].width};
    parameters_create(&l->group, s->d.backend);
    must(parameters_add(l->group, "tokens", 2, (size_t[]){count, l->width}, 1, 0, &l->index, &error));
    must(parameters_allocate(l->group, &s->d.memory, PARAMETERS_TRAINED, &error));
    group_draw(&s->d, l->group, 0.5f);
    l->hook =
        (struct embedding_hook){.state = l, .count = count, .trained = true, .forward = fill, .backward = add_gradient};
    s->embedding[tower] = &l->hook;
}

static void open_both(struct learned l[TOWERS], struct small *s)
{
    learned_open(&l[TOWER_IMAGE], s, TOWER_IMAGE, PROMPTS);
    learned_open(&l[TOWER_TEXT], s, TOWER_TEXT, WORDS);
}

static void close_both(struct learned l[TOWERS])
{
    parameters_destroy(l[TOWER_IMAGE].group);
    parameters_destroy(l[TOWER_TEXT].group);
}

static bool is_f32(const struct small *s)
{
    return s->d.backend->precision == PRECISION_F32;
}

/* The slope of the loss along `direction`, a unit vector, from losses at this distance to either side. */
static double slope_at(struct small *s, struct parameters *group, const float *before, const float *direction,
                       float distance)
{
    size_t n = group->values_count;
    float *moved = small_values(s, group);
    double sides[2];
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < n; i++)
            moved[i] = before[i] + (side == 0 ? distance : -distance) * direction[i];
        must(s->d.ops->upload(s->d.backend, parameters_write_all(group), moved, n * sizeof *moved, &error));
        sides[side] = (double)small_loss(s, false);
    }
    return (sides[0] - sides[1]) / (2 * (double)distance);
}

/* In bf16 a loss is too coarse for the steps of check_gradient: two long steps, whose error of third order cancels. */
static void check_coarsely(struct small *s, const char *name, struct parameters *group)
{
    size_t n = group->values_count;
    float *slope = from_device(&s->d, group->gradients, n * sizeof *slope);
    const float *before = small_values(s, group);
    double norm = 0;
    for (size_t i = 0; i < n; i++)
        norm += (double)slope[i] * (double)slope[i];
    norm = sqrt(norm);
    for (size_t i = 0; i < n; i++)
        slope[i] /= (float)norm;
    double numeric = (4 * slope_at(s, group, before, slope, 0.2f) - slope_at(s, group, before, slope, 0.4f)) / 3;
    must(s->d.ops->upload(s->d.backend, parameters_write_all(group), before, n * sizeof *before, &error));
    if (!(norm > 1e-3 && fabs(numeric - norm) < 0.1 * norm))
        fail_msg("%s: gradient %g along itself, central difference %g", name, norm, numeric);
}

static void check_tokens(struct small *s, struct learned l[TOWERS])
{
    static const char *const names[TOWERS] = {"learned tokens of images", "learned words"};
    small_loss(s, true);
    for (int t = 0; t < TOWERS; t++) {
        struct parameters *group = l[t].group;
        if (is_f32(s))
            small_check_gradient(s, names[t], parameters_write_all(group), group->gradients, group->values_count);
        else
            check_coarsely(s, names[t], group);
    }
}

SMALL_TEST(gradients_in_frozen_towers, 2)
{
    for (enum pool pool = POOL_CLASS_TOKEN; pool <= POOL_MEAN_PATCHES; pool++) {
        struct learned l[TOWERS];
        s->clip->pool = pool;
        open_both(l, s);
        check_tokens(s, l);
        close_both(l);
    }
}

/* The towers' own gradients are right, too: positions are those where words stand. */
TEST(gradients_with_trained_towers)
{
    static const char *const names[] = {"positional_embedding",        "token_embedding.weight",
                                        "visual.positional_embedding", "visual.class_embedding",
                                        "visual.conv1.weight",         "visual.ln_pre.weight"};
    struct small s;
    struct learned l[TOWERS];
    small_open(&s, 2, PARAMETERS_TRAINED, ACTIVATION_QUICK_GELU);
    open_both(l, &s);
    check_tokens(&s, l);
    for (size_t i = 0; is_f32(&s) && i < sizeof names / sizeof *names; i++) {
        const struct parameter *p = parameters_find(s.clip->parameters, names[i]);
        small_check_gradient(&s, names[i], parameters_write(s.clip->parameters, p->offset, p->size),
                             s.clip->parameters->gradients + p->offset, p->size);
    }
    close_both(l);
    small_close(&s);
}

/* Words 4 and 5 as learned tokens are the prompt in which they are words. */
SMALL_TEST(words_stand_where_they_are_said_to, 2)
{
    static const int32_t whole[] = {9, 4, 5, 7, 1, 10, 9, 4, 5, 3, 10, 0},
                         rest[] = {9, 7, 1, 10, 0, 0, 9, 3, 10, 0, 0, 0};
    struct learned l;
    const float *expected = small_encode_texts(s, whole, 2, false);
    learned_open(&l, s, TOWER_TEXT, 2);
    const struct parameter *table = parameters_find(s->clip->parameters, "token_embedding.weight");
    const float *words = from_device(&s->d, s->clip->parameters->values + table->offset, table->size * sizeof *words);
    must(parameters_upload(l.group, &l.group->list[0], words + 4 * l.width, &error));
    const float *found = small_encode_texts(s, rest, 2, false);
    for (size_t i = 0; i < 2 * small_dimensions.embed; i++)
        assert_true(fabsf(found[i] - expected[i]) < (is_f32(s) ? 1e-5f : 0.02f));
    parameters_destroy(l.group);
}

SMALL_TEST(prompts_need_room, 1)
{
    static const int32_t tokens[] = {9, 1, 2, 10, 0, 0};
    struct texts texts;
    must(texts_create(&texts, s->clip, &s->d.memory, tokens, 1, &error));
    must(texts_reserve(&texts, s->clip, &s->d.memory, 2, &error));
    assert_int_equal(texts.positions, 6);
    must_refuse(texts_reserve(&texts, s->clip, &s->d.memory, 3, &error), ERROR_ARGUMENT,
                "3 learned tokens: the longest prompt has 4 tokens, and the model's context is 6");
    must(texts_reserve(&texts, s->clip, &s->d.memory, 1, &error));
    assert_int_equal(*(const int32_t *)from_device(&s->d, texts.lengths, sizeof(int32_t)), 5);
}

SMALL_TEST(bits_do_not_depend_on_threads, ANY_THREADS)
{
    struct learned l[TOWERS];
    open_both(l, s);
    small_loss(s, true);
    for (int t = 0; t < TOWERS; t++)
        digest_gradients(&s->d, l[t].group);
    close_both(l);
}
