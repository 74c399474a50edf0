/* Experts in the place of the MLP, and routers: gradients, how they start, what answers. */
#include "adapters/experts/expert.h"
#include "adapters/routers/router.h"
#include "models/vit.h"
#include "tests/adapters/small_adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EWA "kind=ffn router=random_uniform routing=per_token top_k=1 routers=one"

static const char *const gradient_forms[] = {
    "kind=ffn",
    "kind=ffn top_k=3 gate_input=mean blocks=last_1",
    "kind=ffn top_k=2 towers=text routing=per_token balance_loss=cv balance_weight=0.5",
    "kind=ffn router=softmax_topk router_noise=0.2 towers=image",
    "kind=ffn router=softmax_topk router_noise=0.2 towers=image gate_input=mean balance_loss=widenet "
    "balance_weight=0.5",
    "kind=ffn router=softmax_topk router_noise=0.2 towers=text routing=per_token capacity=0.8 balance_loss=rmoe "
    "balance_weight=0.5",
    "router=softmax_topk bottleneck=12", /* no hidden unit so near 0 that a difference crosses it */
    EWA " towers=text",
    EWA " towers=image routing=per_sample experts=3", /* as many as images: every one has a gradient */
};

GRADIENTS_TEST(gradient_forms)

/* Experts drop hidden units as the MLPs do that they replace. */
SMALL_TEST(gradients_with_dropout_match_differences, 2)
{
    struct adapter_settings settings[] = {small_settings_of("kind=ffn blocks=last_1"),
                                          small_settings_of(EWA " towers=image")};
    settings[0].activation = ACTIVATION_GELU;
    s->dropout = 0.3f;
    for (int i = 0; i < 2; i++) {
        struct adapters *adapters = small_adapters_add(s, &settings[i]);
        small_adapters_check_gradients(s, adapters);
        adapters_destroy(adapters);
    }
}

/* 30 tokens with 2 of 6 experts each: C · K · T / E is 11, of which the product in double precision is a little more. All
 * tokens want the first two. */
ADAPTERS_TEST(capacity_is_the_exact_product_rounded_up, 2,
              "kind=ffn router=softmax_topk routing=per_token towers=image experts=6 capacity=1.1")
{
    const struct adapter_tower *tower = &adapters->towers[TOWER_IMAGE];
    const struct parameter *routers = &tower->parameters->list[tower->banks[0].routers];
    small_clear(s, tower->parameters, routers->offset, routers->size);
    small_loss(s, false);
    const struct dispatch *dispatch = &tower->passes[0].routed.dispatch;
    assert_int_equal(dispatch->samples, 30);
    const int32_t *offsets = from_device(&s->d, dispatch->offsets, 7 * sizeof *offsets);
    for (int32_t e = 0; e <= 6; e++)
        assert_int_equal(offsets[e], 11 * (e < 2 ? e : 2));
}

/* As fresh experts. */
static void start_from_mlps(struct small *s, struct adapters *adapters)
{
    const struct block *const blocks[TOWERS] = {s->clip->towers[0].blocks, s->clip->towers[1].blocks};
    for (int t = 0; t < TOWERS; t++)
        small_clear(s, adapters->towers[t].parameters, 0, adapters->towers[t].parameters->values_count);
    must(adapters_initialize(adapters, blocks, 7, &error));
}

/* How far the features with hooks are from those without, as a share of the largest. */
static double distance_from_clip(struct small *s, enum tower tower)
{
    size_t n = (size_t)(tower == TOWER_IMAGE ? SMALL_IMAGES : SMALL_PROMPTS) * small_dimensions.embed;
    const struct block_hook *hooks = s->hooks[tower];
    const float *with = small_features(s, tower);
    s->hooks[tower] = NULL;
    const float *without = small_features(s, tower);
    s->hooks[tower] = hooks;
    float largest = 0, apart = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmaxf(largest, fabsf(without[i]));
        apart = fmaxf(apart, fabsf(with[i] - without[i]));
    }
    return (double)(apart / largest);
}

/* Whoever decides, where weights sum to 1: in the last form they do not. */
static const char *const copies[] = {"kind=ffn", EWA, "kind=ffn router=softmax_topk top_k=1 aligned_output=shared",
                                     "kind=ffn router=softmax_topk top_k=1"};

ADAPTERS_TEST_OF(copies_of_the_mlp_compute_what_it_did, 2, copies)
{
    bool same = adapters->settings.router != &router_softmax_topk || adapters->settings.aligned_output != ALIGN_NONE;
    start_from_mlps(s, adapters);
    for (int t = 0; t < TOWERS; t++)
        if ((distance_from_clip(s, (enum tower)t) < rounded(&s->d, 1e-5)) != same)
            fail_msg("features are %g apart", distance_from_clip(s, (enum tower)t));
}

static void expect_mean(struct small *s, const struct adapters *adapters)
{
    const struct adapter_tower *tower = &adapters->towers[TOWER_IMAGE];
    size_t experts = adapters->settings.experts;
    float *mean[EXPERT_PARTS];
    must(adapters_mean(adapters, TOWER_IMAGE, 1, mean, &error));
    for (size_t part = 0; part < EXPERT_PARTS; part++) {
        const struct parameter *p = &tower->parameters->list[expert_tensor(adapters, TOWER_IMAGE, 1, part)];
        size_t n = p->size / experts;
        const float *values = from_device(&s->d, tower->parameters->values + p->offset, p->size * sizeof *values);
        double *expected = doubles(&s->d, NULL, n);
        for (size_t i = 0; i < p->size; i++)
            expected[i % n] += (double)values[i] / (double)experts;
        expect_close(&s->d, "mean of the experts", mean[part], expected, n, 1e-6);
    }
}

/* Of more experts than are summed up at a time; that it answers is in replay_mixtures. Once for all batches, and anew after a
 * step: what is written over it stays until then. */
ADAPTERS_TEST(the_mean_is_computed_after_a_change_alone, 2, EWA " towers=image experts=18")
{
    assert_int_equal(adapters_choices(adapters, TOWER_IMAGE), 0);
    size_t bytes = adapters->towers[TOWER_IMAGE].width * sizeof(float);
    float *mean[EXPERT_PARTS];
    const float *before = small_features(s, TOWER_IMAGE);
    expect_mean(s, adapters);
    must(adapters_mean(adapters, TOWER_IMAGE, 1, mean, &error));
    const float *kept = from_device(&s->d, mean[3], bytes);
    must(s->d.ops->zero(s->d.backend, mean[3], bytes, &error));
    assert_memory_not_equal(before, small_features(s, TOWER_IMAGE), tensor_bytes(&s->features[TOWER_IMAGE]));
    small_loss(s, true);
    must(adapters_step(adapters, s->state, &small_rule, &error));
    small_encode(s);
    expect_mean(s, adapters);
    must(adapters_mean(adapters, TOWER_IMAGE, 1, mean, &error));
    assert_memory_not_equal(kept, from_device(&s->d, mean[3], bytes), bytes);
}

/* A backend that keeps copies of experts in bf16 does not answer with those of the mean before. */
TEST(the_mean_answers_as_it_is_in_bf16)
{
    struct small s;
    if (strcmp(test_backend_name(), "cuda") == 0) /* others may have no bf16 */
        assert_int_equal(setenv("MTIL_TEST_PRECISION", "bf16", 1), 0);
    struct adapters *adapters = small_adapters_open(&s, 2, "router=random_uniform top_k=1 routers=one");
    small_encode(&s);
    small_loss(&s, true);
    must(adapters_step(adapters, s.state, &small_rule, &error));
    const void *found = small_features(&s, TOWER_IMAGE);
    for (size_t b = 0; b < adapters->towers[TOWER_IMAGE].blocks; b++) {
        float *mean[EXPERT_PARTS];
        must(adapters_mean(adapters, TOWER_IMAGE, b, mean, &error));
        for (int i = 0; i < EXPERT_PARTS; i++)
            s.d.backend->renew(s.d.backend, mean[i], 1);
    }
    assert_memory_equal(found, small_features(&s, TOWER_IMAGE), tensor_bytes(&s.features[TOWER_IMAGE]));
    small_adapters_close(&s, adapters);
    unsetenv("MTIL_TEST_PRECISION");
}

/* Of the last block the features need few rows. The others are cut into groups with them, so that each has the expert that it
 * has where all are computed. */
static const char *const one_tower[] = {EWA " towers=image", EWA " towers=text"};

ADAPTERS_TEST_OF(rows_that_nobody_needs_are_dealt_out_all_the_same, 2, one_tower)
{
    enum tower t = adapters_in_tower(adapters, TOWER_IMAGE) ? TOWER_IMAGE : TOWER_TEXT;
    const struct dispatch *dispatch = &adapters->towers[t].passes[1].routed.dispatch;
    int32_t counts[2][SMALL_EXPERTS];
    float losses[2];
    size_t samples[2];
    for (int whole = 0; whole < 2; whole++) {
        adapters->towers[t].hooks[1].whole = whole != 0;
        must(adapters_begin_task(adapters, SMALL_TASK, &error));
        losses[whole] = small_loss(s, false);
        samples[whole] = dispatch->samples;
        must(adapters_read_counts(adapters, t, 1, counts[whole], &error));
    }
    assert_int_equal(samples[0], t == TOWER_IMAGE ? SMALL_IMAGES : 2 * SMALL_PROMPTS);
    assert_between(samples[1], samples[0] + 1, 1000);
    assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
    assert_true(fabs((double)losses[0] - (double)losses[1]) <= rounded(&s->d, 1e-6) * fabs((double)losses[1]));
}

static const float *expert_values(struct small *s, const struct adapters *adapters, size_t part, size_t expert,
                                  size_t *n)
{
    struct expert_slice slice =
        expert_slice(adapters, TOWER_IMAGE, expert_tensor(adapters, TOWER_IMAGE, 1, part), expert);
    *n = slice.size;
    return slice_values(s, adapters, TOWER_IMAGE, slice);
}

/* Copies with noise: every tensor by its own deviation, or all by the same; every expert by other numbers. Independent ones are as
 * models/vit.h draws an MLP: matrices with its deviation, no biases, and nothing in common. */
TEST(experts_start_from_the_mlp_with_noise_or_from_scratch)
{
    static const char *const forms[] = {"kind=ffn init_noise=0.25", "kind=ffn init_noise=0.25 noise_unit=one",
                                        "kind=ffn start=independent"};
    for (int form = 0; form < 3; form++) {
        struct small s;
        struct adapters *adapters = small_adapters_open(&s, 2, forms[form]);
        start_from_mlps(&s, adapters);
        const struct block *block = &s.clip->towers[TOWER_IMAGE].blocks[1];
        const float *mlp[EXPERT_PARTS] = {block->c_fc.weight.value, block->c_fc.bias.value, block->c_proj.weight.value,
                                          block->c_proj.bias.value};
        for (size_t part = 0; part < EXPERT_PARTS; part++) {
            size_t n;
            const float *first = expert_values(&s, adapters, part, 0, &n),
                        *other = expert_values(&s, adapters, part, 3, &n),
                        *from = from_device(&s.d, mlp[part], n * sizeof *from);
            double unit[] = {deviation(from, NULL, n), 1, VIT_START_DEVIATION},
                   expected = form < 2 ? 0.25 : part % 2 == 0,
                   one = deviation(first, form < 2 ? from : NULL, n) / unit[form],
                   apart = deviation(first, other, n) / unit[form],
                   rounding = (form < 2 ? 0.25 : sqrt(0.5)) * 3.5 / sqrt((double)n);
            if (!(fabs(one - expected) <= rounding && fabs(apart - expected * sqrt(2)) <= 2 * rounding))
                fail_msg("%s, part %zu: deviation %g, and %g between experts", forms[form], part, one, apart);
        }
        small_adapters_close(&s, adapters);
    }
}
