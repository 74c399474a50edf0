/* Experts in the place of the MLP, and routers: gradients, how they start, what answers. */
#include "adapters/experts/expert.h"
#include "adapters/experts/kind.h"
#include "adapters/routers/router.h"
#include "models/vit.h"
#include "tests/adapters/adapters.h"
#include "tests/adapters/small_adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TEST(gradients_in_the_place_of_the_mlp_match_differences)
{
    struct adapter_settings settings = small_ffn_settings;
    small_adapters_check(&settings);
    settings.top_k = 3;
    settings.activation = ACTIVATION_GELU;
    settings.gate_input = GATE_MEAN;
    settings.place.blocks = (struct block_choice){.rule = BLOCKS_LAST, .n = 1};
    small_adapters_check(&settings);
    settings = small_ffn_settings;
    settings.place.towers = ADAPT_TEXT;
    settings.routing = ROUTING_PER_TOKEN;
    settings.balance = BALANCE_CV;
    settings.balance_weight = 0.5f;
    small_adapters_check(&settings);
}

static struct adapter_settings ewa_settings(void)
{
    struct adapter_settings settings = small_ffn_settings;
    settings.router = &router_random_uniform;
    settings.routing = ROUTING_PER_TOKEN;
    settings.top_k = settings.tasks = 1;
    return settings;
}

/* Experts drop hidden units as the MLPs do that they replace. */
TEST(gradients_with_dropout_match_differences)
{
    struct adapter_settings settings = small_ffn_settings;
    struct small s;
    settings.activation = ACTIVATION_GELU;
    settings.place.blocks = (struct block_choice){.rule = BLOCKS_LAST, .n = 1};
    struct adapters *adapters = small_adapters_open(&s, 2, &settings);
    s.dropout = 0.3f;
    small_adapters_check_gradients(&s, adapters);
    small_adapters_close(&s, adapters);
    settings = ewa_settings();
    settings.place.towers = ADAPT_IMAGE;
    adapters = small_adapters_open(&s, 2, &settings);
    s.dropout = 0.3f;
    small_adapters_check_gradients(&s, adapters);
    small_adapters_close(&s, adapters);
}

/* As one more kind of expert might be: two layers with nothing between them, whatever the model's MLPs have there. */
TEST(experts_may_have_no_activation)
{
    struct expert_kind bare = expert_lora;
    struct adapter_settings settings = small_settings;
    struct adapters *adapters;
    struct small s;
    struct device d;
    struct arena memory;
    bare.name = "bare";
    bare.activation = ACTIVATION_NONE;
    settings.kind = &bare;
    settings.activation = ACTIVATION_QUICK_GELU;
    small_adapters_check(&settings);
    adapters = small_adapters_open(&s, 1, &settings);
    assert_int_equal(adapters->towers[TOWER_IMAGE].activation, ACTIVATION_NONE);
    small_adapters_close(&s, adapters);
    settings.dropout = 0.25f; /* whose gradient would be that of units which were kept */
    device_open(&d, 1);
    must(d.ops->arena_create(d.backend, &memory, (size_t)1 << 24, "model", &error));
    assert_int_equal(
        adapters_create(&adapters, d.backend, &memory, &small_dimensions, &settings, PARAMETERS_FROZEN, &error),
        ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "kind bare; set adapter.dropout=0"));
    d.ops->arena_destroy(d.backend, &memory);
    device_close(&d);
}

TEST(softmax_router_gradients_match_differences)
{
    struct adapter_settings settings = small_ffn_settings;
    settings.router = &router_softmax_topk;
    settings.router_noise = 0.2f;
    settings.place.towers = ADAPT_IMAGE;
    small_adapters_check(&settings);
    settings.gate_input = GATE_MEAN;
    settings.balance = BALANCE_LOSS_WIDENET;
    settings.balance_weight = 0.5f;
    small_adapters_check(&settings);
    settings.gate_input = GATE_CLASS_TOKEN;
    settings.place.towers = ADAPT_TEXT;
    settings.routing = ROUTING_PER_TOKEN;
    settings.capacity = 0.8;
    settings.balance = BALANCE_LOSS_RMOE;
    small_adapters_check(&settings);
    settings = small_settings;
    settings.router = &router_softmax_topk;
    settings.bottleneck = 12; /* no hidden unit so near 0 that a difference crosses it */
    small_adapters_check(&settings);
}

/* 30 tokens with 2 of 6 experts each: C · K · T / E is 11, of which the product in double precision is a little more. All
 * tokens want the first two. */
TEST(capacity_is_the_exact_product_rounded_up)
{
    struct small s;
    struct adapter_settings settings = small_ffn_settings;
    settings.router = &router_softmax_topk;
    settings.routing = ROUTING_PER_TOKEN;
    settings.place.towers = ADAPT_IMAGE;
    settings.router_noise = 0;
    settings.experts = 6;
    settings.top_k = 2;
    settings.capacity = 1.1;
    struct adapters *adapters = small_adapters_open(&s, 2, &settings);
    const struct adapter_tower *tower = &adapters->towers[TOWER_IMAGE];
    const struct parameter *routers = &tower->parameters->list[tower->banks[0].routers];
    must(s.d.ops->zero(s.d.backend, parameters_write(tower->parameters, routers->offset, routers->size),
                       routers->size * sizeof(float), &error));
    small_loss(&s, false);
    const struct dispatch *dispatch = &tower->passes[0].routed.dispatch;
    assert_int_equal(dispatch->samples, 30);
    const int32_t *offsets = from_device(&s.d, dispatch->offsets, 7 * sizeof *offsets);
    for (int32_t e = 0; e <= 6; e++)
        assert_int_equal(offsets[e], 11 * (e < 2 ? e : 2));
    small_adapters_close(&s, adapters);
}

TEST(gradients_of_a_random_partition_match_differences)
{
    struct adapter_settings settings = ewa_settings();
    settings.place.towers = ADAPT_TEXT;
    small_adapters_check(&settings);
    settings.place.towers = ADAPT_IMAGE;
    settings.routing = ROUTING_PER_SAMPLE;
    settings.experts = 3; /* as many as images: every one has a gradient */
    small_adapters_check(&settings);
}

/* Fresh experts of kind ffn of the small model; the features with them. */
static struct adapters *start_from_mlps(struct small *s, const struct adapter_settings *settings, uint64_t seed)
{
    struct adapters *adapters = small_adapters_open(s, 2, settings);
    const struct block *blocks[TOWERS];
    for (int t = 0; t < TOWERS; t++) {
        struct parameters *group = adapters->towers[t].parameters;
        blocks[t] = s->clip->towers[t].blocks;
        must(s->d.ops->zero(s->d.backend, parameters_write_all(group), group->values_count * sizeof(float), &error));
    }
    must(adapters_initialize(adapters, blocks, seed, &error));
    small_encode(s);
    return adapters;
}

/* How far the features with hooks are from those without, as a share of the largest. */
static double distance_from_clip(struct small *s, enum tower tower)
{
    size_t n = tensor_elements(&s->features[tower]);
    const struct block_hook *hooks = s->hooks[tower];
    small_encode(s);
    const float *with = from_device(&s->d, s->features[tower].data, n * sizeof *with);
    s->hooks[tower] = NULL;
    small_encode(s);
    const float *without = from_device(&s->d, s->features[tower].data, n * sizeof *without);
    s->hooks[tower] = hooks;
    float largest = 0, apart = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmaxf(largest, fabsf(without[i]));
        apart = fmaxf(apart, fabsf(with[i] - without[i]));
    }
    return (double)(apart / largest);
}

/* Whoever decides, where weights sum to 1. */
TEST(copies_of_the_mlp_compute_what_it_did)
{
    struct adapter_settings cases[] = {small_ffn_settings, ewa_settings(), small_ffn_settings, small_ffn_settings};
    cases[2].router = cases[3].router = &router_softmax_topk;
    cases[2].top_k = cases[3].top_k = 1;
    cases[2].aligned_output = ALIGN_SHARED;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct small s;
        struct adapters *adapters = start_from_mlps(&s, &cases[i], 7);
        for (int t = 0; t < TOWERS; t++)
            if ((distance_from_clip(&s, (enum tower)t) < rounded(&s.d, 1e-5)) != (i < 3))
                fail_msg("case %zu: features are %g apart", i, distance_from_clip(&s, (enum tower)t));
        small_adapters_close(&s, adapters);
    }
}

/* In evaluation, of experts that are not alike: the same as that of as many copies of their mean. */
TEST(without_a_router_the_mean_of_the_experts_answers)
{
    struct small s;
    struct adapter_settings settings = ewa_settings();
    settings.experts = 18; /* more than are summed up at a time */
    settings.place.towers = ADAPT_IMAGE;
    struct adapters *adapters = small_adapters_open(&s, 2, &settings);
    small_encode(&s);
    size_t n = tensor_elements(&s.features[TOWER_IMAGE]), tensors[EXPERT_PARTS];
    double *expected = doubles(&s.d, from_device(&s.d, s.features[TOWER_IMAGE].data, n * sizeof(float)), n);
    struct parameters *group = adapters->towers[TOWER_IMAGE].parameters;
    for (size_t b = 0; b < 2; b++) {
        expert_tensors(adapters, TOWER_IMAGE, b, tensors);
        for (size_t part = 0; part < EXPERT_PARTS; part++) {
            const struct parameter *p = &group->list[tensors[part]];
            size_t each = p->size / settings.experts;
            float *values = from_device(&s.d, group->values + p->offset, p->size * sizeof *values);
            for (size_t i = 0; i < each; i++) {
                double mean = 0;
                for (size_t e = 0; e < settings.experts; e++)
                    mean += (double)values[e * each + i] / (double)settings.experts;
                for (size_t e = 0; e < settings.experts; e++)
                    values[e * each + i] = (float)mean;
            }
            must(parameters_upload(group, p, values, &error));
        }
    }
    small_encode(&s);
    expect_close(&s.d, "features", s.features[TOWER_IMAGE].data, expected, n, 1e-5);
    assert_int_equal(adapters_choices(adapters, TOWER_IMAGE), 0);
    small_adapters_close(&s, adapters);
}

static void expect_mean_to_the_bit(struct small *s, const struct adapters *adapters)
{
    const struct adapter_tower *tower = &adapters->towers[TOWER_IMAGE];
    size_t tensors[EXPERT_PARTS], experts = adapters->settings.experts;
    float *mean[EXPERT_PARTS];
    must(adapters_mean(adapters, TOWER_IMAGE, 1, mean, &error));
    expert_tensors(adapters, TOWER_IMAGE, 1, tensors);
    for (size_t part = 0; part < EXPERT_PARTS; part++) {
        const struct parameter *p = &tower->parameters->list[tensors[part]];
        size_t n = p->size / experts;
        const float *values = from_device(&s->d, tower->parameters->values + p->offset, p->size * sizeof *values);
        float *expected = from_device(&s->d, mean[part], n * sizeof *expected);
        for (size_t i = 0; i < n; i++) {
            double sum = 0;
            for (size_t e = 0; e < experts; e++)
                sum += (double)values[e * n + i];
            expected[i] = (float)(sum / (double)experts);
        }
        expect_floats(&s->d, "mean of the experts", mean[part], expected, n);
    }
}

/* Once for all batches, and anew after a step: what is written over it stays until then. */
TEST(the_mean_is_computed_after_a_change_alone)
{
    struct small s;
    struct adapter_settings settings = ewa_settings();
    settings.place.towers = ADAPT_IMAGE;
    struct adapters *adapters = small_adapters_open(&s, 2, &settings);
    size_t bytes = adapters->towers[TOWER_IMAGE].width * sizeof(float);
    float *mean[EXPERT_PARTS];
    small_encode(&s);
    expect_mean_to_the_bit(&s, adapters);
    const float *before = from_device(&s.d, s.features[TOWER_IMAGE].data, tensor_bytes(&s.features[TOWER_IMAGE]));
    must(adapters_mean(adapters, TOWER_IMAGE, 1, mean, &error));
    const float *kept = from_device(&s.d, mean[3], bytes);
    must(s.d.ops->zero(s.d.backend, mean[3], bytes, &error));
    small_encode(&s);
    const float *after = from_device(&s.d, s.features[TOWER_IMAGE].data, tensor_bytes(&s.features[TOWER_IMAGE]));
    assert_memory_not_equal(before, after, tensor_bytes(&s.features[TOWER_IMAGE]));
    small_loss(&s, true);
    must(adapters_step(adapters, s.state, &small_rule, &error));
    small_encode(&s);
    expect_mean_to_the_bit(&s, adapters);
    must(adapters_mean(adapters, TOWER_IMAGE, 1, mean, &error));
    assert_memory_not_equal(kept, from_device(&s.d, mean[3], bytes), bytes);
    small_adapters_close(&s, adapters);
}

/* A backend that keeps copies of experts in bf16 does not answer with those of the mean before. */
TEST(the_mean_answers_as_it_is_in_bf16)
{
    struct small s;
    struct adapter_settings settings = small_settings;
    settings.router = &router_random_uniform;
    settings.top_k = settings.tasks = 1;
    if (strcmp(test_backend_name(), "cuda") == 0) /* others may have no bf16 */
        assert_int_equal(setenv("MTIL_TEST_PRECISION", "bf16", 1), 0);
    struct adapters *adapters = small_adapters_open(&s, 2, &settings);
    small_encode(&s);
    small_loss(&s, true);
    must(adapters_step(adapters, s.state, &small_rule, &error));
    small_encode(&s);
    const struct tensor *features = &s.features[TOWER_IMAGE];
    const void *found = from_device(&s.d, features->data, tensor_bytes(features));
    for (size_t b = 0; b < adapters->towers[TOWER_IMAGE].blocks; b++) {
        float *mean[EXPERT_PARTS];
        must(adapters_mean(adapters, TOWER_IMAGE, b, mean, &error));
        for (int i = 0; i < EXPERT_PARTS; i++)
            s.d.backend->renew(s.d.backend, mean[i], 1);
    }
    small_encode(&s);
    assert_memory_equal(found, from_device(&s.d, features->data, tensor_bytes(features)), tensor_bytes(features));
    small_adapters_close(&s, adapters);
    unsetenv("MTIL_TEST_PRECISION");
}

/* Of the last block the features need few rows. The others are cut into groups with them, so that each has the expert that it
 * has where all are computed. */
TEST(rows_that_nobody_needs_are_dealt_out_all_the_same)
{
    enum { EXPERTS = 5 };
    for (int t = 0; t < TOWERS; t++) {
        struct small s;
        struct adapter_settings settings = ewa_settings();
        settings.place.towers = t == TOWER_IMAGE ? ADAPT_IMAGE : ADAPT_TEXT;
        struct adapters *adapters = small_adapters_open(&s, 2, &settings);
        const struct adapter_tower *tower = &adapters->towers[t];
        const struct dispatch *dispatch = &tower->passes[1].routed.dispatch;
        int32_t counts[2][EXPERTS];
        float losses[2];
        size_t samples[2];
        for (int whole = 0; whole < 2; whole++) {
            tower->hooks[1].whole = whole != 0;
            must(adapters_begin_task(adapters, SMALL_TASK, &error));
            losses[whole] = small_loss(&s, false);
            samples[whole] = dispatch->samples;
            must(adapters_read_counts(adapters, (enum tower)t, 1, counts[whole], &error));
        }
        assert_int_equal(samples[0], t == TOWER_IMAGE ? SMALL_IMAGES : 2 * SMALL_PROMPTS);
        assert_in_range(samples[1], samples[0] + 1, 1000);
        assert_memory_equal(counts[0], counts[1], sizeof counts[0]);
        assert_true(fabs((double)losses[0] - (double)losses[1]) <= rounded(&s.d, 1e-6) * fabs((double)losses[1]));
        small_adapters_close(&s, adapters);
    }
}

static const float *expert_values(struct small *s, const struct adapters *adapters, size_t part, size_t expert,
                                  size_t *n)
{
    const struct adapter_tower *tower = &adapters->towers[TOWER_IMAGE];
    size_t tensors[EXPERT_PARTS];
    expert_tensors(adapters, TOWER_IMAGE, 1, tensors);
    struct expert_slice slice = expert_slice(adapters, TOWER_IMAGE, tensors[part], expert);
    *n = slice.size;
    return from_device(&s->d, tower->parameters->values + slice.offset, slice.size * sizeof(float));
}

static double deviation(const float *values, const float *around, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (double)values[i] - (around != NULL ? (double)around[i] : 0);
        sum += x;
        squares += x * x;
    }
    return sqrt(squares / (double)n - pow(sum / (double)n, 2));
}

/* Every tensor by its own deviation, or all by the same; every expert by other numbers. */
static void expect_noise(bool absolute)
{
    struct small s;
    struct adapter_settings settings = small_ffn_settings;
    settings.init_noise = 0.25f;
    settings.absolute_noise = absolute;
    struct adapters *adapters = start_from_mlps(&s, &settings, 7);
    const struct block *block = &s.clip->towers[TOWER_IMAGE].blocks[1];
    const float *mlp[EXPERT_PARTS] = {block->c_fc.weight.value, block->c_fc.bias.value, block->c_proj.weight.value,
                                      block->c_proj.bias.value};
    for (size_t part = 0; part < EXPERT_PARTS; part++) {
        size_t n;
        const float *first = expert_values(&s, adapters, part, 0, &n),
                    *other = expert_values(&s, adapters, part, 3, &n),
                    *from = from_device(&s.d, mlp[part], n * sizeof *from);
        double unit = absolute ? 1 : deviation(from, NULL, n), share = deviation(first, from, n) / unit,
               apart = deviation(first, other, n) / unit, rounding = 3.5 * 0.25 / sqrt((double)n);
        if (!(fabs(share - 0.25) < rounding && fabs(apart - 0.25 * sqrt(2)) < 2 * rounding))
            fail_msg("part %zu: noise is %g, and %g between experts", part, share, apart);
    }
    small_adapters_close(&s, adapters);
}

TEST(noise_is_a_share_of_each_tensors_deviation)
{
    expect_noise(false);
}

TEST(noise_may_be_absolute)
{
    expect_noise(true);
}

/* As models/vit.h draws an MLP: matrices with its deviation, no biases, and nothing in common. */
TEST(independent_experts_are_mlps_from_scratch)
{
    struct small s;
    struct adapter_settings settings = small_ffn_settings;
    settings.start = EXPERT_START_INDEPENDENT;
    struct adapters *adapters = start_from_mlps(&s, &settings, 7);
    for (size_t part = 0; part < EXPERT_PARTS; part++) {
        size_t n;
        const float *first = expert_values(&s, adapters, part, 0, &n),
                    *other = expert_values(&s, adapters, part, 3, &n);
        double one = deviation(first, NULL, n) / VIT_START_DEVIATION,
               apart = deviation(first, other, n) / VIT_START_DEVIATION, rounding = 3.5 / sqrt(2.0 * (double)n),
               expected = part % 2 == 0;
        if (!(fabs(one - expected) <= rounding && fabs(apart - expected * sqrt(2)) <= 2 * rounding))
            fail_msg("part %zu: deviation %g, and %g between experts", part, one, apart);
    }
    small_adapters_close(&s, adapters);
}
