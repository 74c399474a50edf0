/* The experts' bank and hook: sizes, settings, what a step changes and what it leaves, gradients, bits. */
#include "adapters/experts/kind.h"
#include "adapters/freeze.h"
#include "adapters/routers/router.h"
#include "tests/adapters/adapters.h"
#include "tests/adapters/small_adapters.h"

#include <math.h>
#include <string.h>

static const struct clip_dimensions vit_b_16 = {.embed = 512,
                                                .resolution = 224,
                                                .patch = 16,
                                                .image_width = 768,
                                                .image_hidden = 3072,
                                                .image_heads = 12,
                                                .image_blocks = 12,
                                                .context = 77,
                                                .vocabulary = 49408,
                                                .text_width = 512,
                                                .text_hidden = 2048,
                                                .text_heads = 8,
                                                .text_blocks = 12};

TEST(values_of_vit_b_16_are_the_papers)
{
    const struct adapter_settings paper = {.experts = 55, .top_k = 2, .tasks = 11, .bottleneck = 64};
    assert_int_equal(adapters_count_values(&vit_b_16, &paper), 127649280);
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 1, NULL);
    assert_int_equal(adapters_count_values(&small_dimensions, &small_settings), adapters_values(adapters));
    small_adapters_close(&s, adapters);
}

/* Both weights of an expert in 12 blocks of 768 and 12 of 512; what goes through slots is rounded anew each time. */
TEST(bytes_of_experts_in_bf16)
{
    struct adapter_settings settings = {.experts = 55, .top_k = 2, .tasks = 11, .bottleneck = 64};
    const size_t one = 2 * 12 * (2 * 64 * 768 + 2 * 64 * 512);
    assert_int_equal(adapters_rounded_bytes(&vit_b_16, &settings), 216268800);
    assert_int_equal(adapters_rounded_bytes(&vit_b_16, &settings), 55 * one);
    settings.shared_expert = true;
    assert_int_equal(adapters_rounded_bytes(&vit_b_16, &settings), 56 * one);
    settings.routing = ROUTING_PER_TOKEN;
    assert_int_equal(adapters_rounded_bytes(&vit_b_16, &settings), one);
    settings.bottleneck = 136; /* more than 128 hidden units */
    assert_int_equal(adapters_rounded_bytes(&vit_b_16, &settings), 0);
    settings = (struct adapter_settings){
        .router = &router_random_uniform, .experts = 8, .top_k = 1, .tasks = 1, .bottleneck = 64};
    assert_int_equal(adapters_rounded_bytes(&vit_b_16, &settings), 9 * one); /* and their mean */
    settings.kind = &expert_ffn;
    assert_int_equal(adapters_rounded_bytes(&vit_b_16, &settings), 0);
}

TEST(impossible_settings_are_refused)
{
    static const struct {
        struct adapter_settings settings;
        const char *words[2];
    } cases[] = {
        {{.experts = 2, .top_k = 3, .tasks = 1, .bottleneck = 8}, {"top_k is 3", "2 experts"}},
        {{.experts = 0, .top_k = 1, .tasks = 1, .bottleneck = 8}, {"experts", "at least 1"}},
        {{.experts = 2, .top_k = 0, .tasks = 1, .bottleneck = 8}, {"top_k", "at least 1"}},
        {{.experts = 2, .top_k = 1, .tasks = 0, .bottleneck = 8}, {"tasks", "at least 1"}},
        {{.experts = 2, .top_k = 1, .tasks = 1}, {"bottleneck", "at least 1"}},
        {{.experts = 2, .top_k = 1, .tasks = 1, .bottleneck = 8, .dropout = 1}, {"dropout", "below 1"}},
        {{.router = &router_random_uniform, .experts = 3, .top_k = 2, .tasks = 1, .bottleneck = 8},
         {"random_uniform", "top_k=1"}},
        {{.router = &router_random_uniform, .experts = 3, .top_k = 1, .tasks = 2, .bottleneck = 8},
         {"random_uniform", "routers=one"}},
        {{.router = &router_softmax_topk, .experts = 3, .top_k = 1, .tasks = 2, .bottleneck = 8, .balance = BALANCE_CV},
         {"softmax_topk", "balance loss cv"}},
        {{.kind = &expert_ffn, .experts = 2, .top_k = 1, .tasks = 1, .scale = 0.1f, .input = EXPERT_INPUT_POST_LN},
         {"scale 1", "0.1"}},
        {{.kind = &expert_ffn, .experts = 2, .top_k = 1, .tasks = 1, .scale = 1, .input = EXPERT_INPUT_POST_LN},
         {"ffn", "activation"}},
        {{.experts = 2, .top_k = 1, .tasks = 1, .bottleneck = 8, .dropout = -0.1f}, {"dropout", "-0.1"}},
        {{.experts = 1, .top_k = 1, .tasks = 1, .bottleneck = 8, .balance = BALANCE_CV},
         {"nothing to balance", "none"}},
        {{.experts = 2, .top_k = 1, .tasks = 1, .bottleneck = 8, .routing = ROUTING_PER_TOKEN, .gate_input = GATE_MEAN},
         {"per_token", "nothing to average"}},
        {{.experts = 2, .top_k = 1, .tasks = 1, .bottleneck = 6, .dropout = 0.1f}, {"bottleneck", "6"}},
        {{.experts = SIZE_MAX / 2, .top_k = 1, .tasks = 1, .bottleneck = SIZE_MAX / 2},
         {"larger than any memory", "down_proj"}},
        {{.experts = 1 << 20, .top_k = 1, .tasks = 1, .bottleneck = 1 << 10}, {"MiB", "model"}},
    };
    struct device d;
    struct arena memory;
    device_open(&d, 1);
    must(d.ops->arena_create(d.backend, &memory, (size_t)1 << 24, "model", &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adapters *adapters = NULL;
        assert_int_not_equal(adapters_create(&adapters, d.backend, &memory, &small_dimensions, &cases[i].settings,
                                             PARAMETERS_TRAINED, &error),
                             OK);
        assert_null(adapters);
        for (size_t w = 0; w < 2; w++)
            if (strstr(error.message, cases[i].words[w]) == NULL)
                fail_msg("'%s' is not in: %s", cases[i].words[w], error.message);
    }
    d.ops->arena_destroy(d.backend, &memory);
    device_close(&d);
}

TEST(fresh_adapters_change_nothing)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 2, NULL);
    for (int t = 0; t < TOWERS; t++)
        must(s.d.ops->zero(s.d.backend, parameters_write_all(adapters->towers[t].parameters),
                           adapters->towers[t].parameters->values_count * sizeof(float), &error));
    must(adapters_initialize(adapters, NULL, 7, &error));
    for (int t = 0; t < TOWERS; t++) {
        size_t tensors[4];
        expert_tensors(adapters, (enum tower)t, 0, tensors);
        struct expert_slice down = expert_slice(adapters, (enum tower)t, tensors[0], 0);
        const float *values =
            from_device(&s.d, adapters->towers[t].parameters->values + down.offset, down.size * sizeof *values);
        float bound = 1.0f / sqrtf((float)adapters->towers[t].width), largest = 0;
        for (size_t i = 0; i < down.size; i++)
            largest = fmaxf(largest, fabsf(values[i]));
        assert_true(largest <= bound && largest > 0.9f * bound);
    }
    small_encode(&s);
    size_t bytes = tensor_bytes(&s.features[TOWER_IMAGE]);
    const float *with = from_device(&s.d, s.features[TOWER_IMAGE].data, bytes);
    s.hooks[TOWER_IMAGE] = s.hooks[TOWER_TEXT] = NULL;
    small_encode(&s);
    expect_floats(&s.d, "features", s.features[TOWER_IMAGE].data, with, bytes / sizeof *with);
    small_adapters_close(&s, adapters);
}

TEST(samples_without_a_router_are_the_original_clip)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 2, NULL);
    size_t embed = small_dimensions.embed;
    small_set_routers(&s, TOWER_IMAGE, (const int32_t[]){2, -1, 0});
    small_encode(&s);
    const float *mixed = from_device(&s.d, s.features[TOWER_IMAGE].data, SMALL_IMAGES * embed * sizeof *mixed);
    small_set_routers(&s, TOWER_IMAGE, (const int32_t[]){2, 2, 2});
    small_encode(&s);
    expect_floats(&s.d, "router 2", s.features[TOWER_IMAGE].data, mixed, embed);
    s.hooks[TOWER_IMAGE] = NULL;
    small_encode(&s);
    const float *plain = from_device(&s.d, s.features[TOWER_IMAGE].data, SMALL_IMAGES * embed * sizeof *plain);
    assert_memory_equal(plain + embed, mixed + embed, embed * sizeof *plain);
    assert_memory_not_equal(plain, mixed, embed * sizeof *plain);
    assert_memory_not_equal(plain + 2 * embed, mixed + 2 * embed, embed * sizeof *plain);
    small_adapters_close(&s, adapters);
}

TEST(images_do_not_depend_on_their_batch)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 2, NULL);
    size_t embed = small_dimensions.embed;
    small_set_routers(&s, TOWER_IMAGE, (const int32_t[]){2, -1, 0});
    small_encode(&s);
    const float *together = from_device(&s.d, s.features[TOWER_IMAGE].data, SMALL_IMAGES * embed * sizeof *together);
    for (size_t first = 0; first < SMALL_IMAGES; first++)
        for (size_t count = 1; first + count <= SMALL_IMAGES; count++) {
            struct tensor features;
            small_encode_images(&s, first, count, &features);
            expect_floats(&s.d, "part of a batch", features.data, together + first * embed, count * embed);
        }
    small_adapters_close(&s, adapters);
}

/* Experts in the order of counts; a block that some expert was left out of. */
TEST(step_changes_what_was_used_and_not_frozen)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 2, NULL);
    const int32_t frozen[5] = {1, 0, 1, 0, 0};
    size_t experts = small_settings.experts, changed = 0, spared = 0;
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++)
            must(adapters_write_frozen(adapters, (enum tower)t, b, frozen, &error));
    const float *before[TOWERS];
    for (int t = 0; t < TOWERS; t++)
        before[t] = from_device(&s.d, adapters->towers[t].parameters->values,
                                adapters->towers[t].parameters->values_count * sizeof(float));
    small_loss(&s, true);
    must(adapters_step(adapters, s.state, &small_rule, &error));
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++) {
            const struct parameters *group = adapters->towers[t].parameters;
            size_t tensors[4];
            int32_t counts[5];
            must(adapters_read_counts(adapters, (enum tower)t, b, counts, &error));
            expert_tensors(adapters, (enum tower)t, b, tensors);
            for (size_t k = 0; k < 4 * experts; k++) {
                size_t e = k % experts;
                struct expert_slice slice = expert_slice(adapters, (enum tower)t, tensors[k / experts], e);
                const float *after = from_device(&s.d, group->values + slice.offset, slice.size * sizeof *after);
                const int32_t *steps = from_device(
                    &s.d, group->steps + group->list[tensors[k / experts]].first_segment + e, sizeof *steps);
                bool expected = counts[e] > 0 && !frozen[e],
                     same = memcmp(after, before[t] + slice.offset, slice.size * sizeof *after) == 0;
                assert_int_equal(same, !expected);
                assert_int_equal(*steps, expected);
                changed += expected;
                spared += !expected;
            }
            for (size_t task = 0; task < SMALL_TASKS; task++) {
                struct expert_slice slice =
                    expert_slice(adapters, (enum tower)t, adapters->towers[t].banks[b].routers, task);
                const float *after = from_device(&s.d, group->values + slice.offset, slice.size * sizeof *after);
                assert_int_equal(memcmp(after, before[t] + slice.offset, slice.size * sizeof *after) != 0,
                                 task == SMALL_TASK);
            }
        }
    assert_true(changed > 0 && spared > 0);
    small_adapters_close(&s, adapters);
}

TEST(counts_are_per_task)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 2, NULL);
    int32_t counts[5], total = 0;
    small_loss(&s, false);
    small_loss(&s, false);
    small_encode(&s); /* evaluation does not count */
    must(adapters_read_counts(adapters, TOWER_TEXT, 1, counts, &error));
    for (int e = 0; e < 5; e++)
        total += counts[e];
    assert_int_equal(total, 2 * SMALL_PROMPTS * small_settings.top_k);

    small_loss(&s, true);
    must(adapters_step(adapters, s.state, &small_rule, &error));
    must(adapters_begin_task(adapters, 2, &error));
    const struct parameters *group = adapters->towers[TOWER_TEXT].parameters;
    const struct expert_bank *bank = &adapters->towers[TOWER_TEXT].banks[1];
    expect_integers(&s.d, "counts", bank->counts, (const int32_t[5]){0}, 5);
    expect_integers(&s.d, "flags of experts and routers", bank->used, (const int32_t[8]){0, 0, 0, 0, 0, 0, 0, 1}, 8);
    const float *zeros =
        from_device(&s.d, room(&s.d, group->values_count * sizeof(float)), group->values_count * sizeof(float));
    expect_floats(&s.d, "first moment", group->first_moment, zeros, group->values_count);
    expect_floats(&s.d, "second moment", group->second_moment, zeros, group->values_count);
    expect_floats(&s.d, "step counts", group->steps, zeros, group->segments); /* 0 in either type */

    assert_int_equal(adapters_begin_task(adapters, SMALL_TASKS, &error), ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "task 3"));
    small_adapters_close(&s, adapters);
}

/* Every stacked tensor that the task trains, along its gradient. */
TEST(gradients_match_differences)
{
    struct adapter_settings settings = small_settings;
    small_adapters_check(&settings);
    settings.dropout = 0.25f;
    small_adapters_check(&settings);
    settings.input = EXPERT_INPUT_POST_LN;
    settings.top_k = 3;
    small_adapters_check(&settings);
    settings.top_k = settings.experts;
    small_adapters_check(&settings);
}

TEST(gradients_of_means_match_differences)
{
    struct adapter_settings settings = small_settings;
    settings.gate_input = GATE_MEAN;
    small_adapters_check(&settings);
    settings.dropout = 0.25f;
    settings.input = EXPERT_INPUT_POST_LN;
    settings.top_k = 3;
    small_adapters_check(&settings);
    settings.balance = BALANCE_CV;
    settings.balance_weight = 0.5f;
    settings.shared_expert = true;
    settings.bottleneck = 20;
    small_adapters_check(&settings);
}

TEST(gradients_of_tokens_match_differences)
{
    struct adapter_settings settings = small_settings;
    settings.routing = ROUTING_PER_TOKEN;
    small_adapters_check(&settings);
    settings.dropout = 0.25f;
    settings.input = EXPERT_INPUT_POST_LN;
    settings.top_k = 3;
    settings.bottleneck = 20;
    small_adapters_check(&settings);
    settings.balance = BALANCE_CV;
    settings.balance_weight = 0.5f;
    settings.shared_expert = true;
    small_adapters_check(&settings);
}

TEST(shared_expert_gradients_match_differences)
{
    struct adapter_settings settings = small_settings;
    settings.shared_expert = true;
    settings.dropout = 0.25f;
    settings.bottleneck = 20; /* no hidden unit so near 0 that a difference crosses it */
    small_adapters_check(&settings);
    settings.bottleneck = 12;
    settings.input = EXPERT_INPUT_POST_LN;
    small_adapters_check(&settings);
}

TEST(the_shared_expert_starts_apart_from_the_others)
{
    struct adapter_settings settings = small_settings;
    struct small s;
    settings.shared_expert = true;
    struct adapters *adapters = small_adapters_open(&s, 2, &settings);
    must(adapters_initialize(adapters, NULL, 7, &error));
    for (int t = 0; t < TOWERS; t++) {
        const struct parameters *group = adapters->towers[t].parameters;
        const struct expert_bank *bank = &adapters->towers[t].banks[1];
        const float *values = from_device(&s.d, group->values, group->values_count * sizeof *values),
                    *shared = values + group->list[bank->shared.down_weight].offset;
        size_t n = group->list[bank->shared.down_weight].size;
        for (size_t e = 0; e < settings.experts; e++)
            assert_memory_not_equal(shared, values + group->list[bank->down_weight].offset + e * n, n * sizeof *shared);
    }
    small_adapters_close(&s, adapters);
}

/* Moves the one expert of every block of `from` to the shared one of `to`. */
static void share_experts(struct small *s, const struct adapters *from, const struct adapters *to)
{
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < from->towers[t].blocks; b++) {
            const struct parameters *group = from->towers[t].parameters;
            const struct expert_stack *shared = &to->towers[t].banks[b].shared;
            const size_t targets[] = {shared->down_weight, shared->down_bias, shared->up_weight, shared->up_bias};
            size_t sources[4];
            expert_tensors(from, (enum tower)t, b, sources);
            for (int i = 0; i < 4; i++) {
                size_t n = group->list[sources[i]].size;
                const float *values =
                    from_device(&s->d, parameters_weight(group, sources[i]).value, n * sizeof *values);
                must(parameters_upload(to->towers[t].parameters, &to->towers[t].parameters->list[targets[i]], values,
                                       &error));
            }
        }
}

/* The same as the only expert there is, which has gate 1 too, beside one that adds nothing; also for a sample without a
 * router, which uses neither. */
TEST(the_shared_expert_is_an_expert)
{
    struct small s;
    struct adapter_settings settings = small_settings;
    settings.experts = settings.top_k = 1;
    struct adapters *plain = small_adapters_open(&s, 2, &settings), *shared;
    settings.shared_expert = true;
    must(adapters_create(&shared, s.d.backend, &s.d.memory, &small_dimensions, &settings, PARAMETERS_FROZEN, &error));
    share_experts(&s, plain, shared);
    small_set_routers(&s, TOWER_IMAGE, (const int32_t[]){1, -1, 0});
    small_encode(&s);
    size_t n = tensor_elements(&s.features[TOWER_IMAGE]);
    const float *expected = from_device(&s.d, s.features[TOWER_IMAGE].data, n * sizeof *expected);
    s.hooks[TOWER_IMAGE] = adapters_hooks(shared, TOWER_IMAGE);
    small_encode(&s);
    expect_floats(&s.d, "features", s.features[TOWER_IMAGE].data, expected, n);
    adapters_destroy(shared);
    small_adapters_close(&s, plain);
}

/* Every step moves it, whatever is frozen; merging leaves it alone. */
TEST(the_shared_expert_is_neither_frozen_nor_merged)
{
    struct small s;
    struct adapter_settings settings = small_settings;
    settings.shared_expert = true;
    struct adapters *adapters = small_adapters_open(&s, 2, &settings);
    struct merge_plan plan = {.combiner = NULL};
    struct expert_changes changes = {0};
    must(merge_policy_find(&plan.policy, "most_used", &error));
    const struct adapter_tower *tower = &adapters->towers[TOWER_TEXT];
    const struct parameter *p = &tower->parameters->list[tower->banks[1].shared.up_bias];
    small_loss(&s, true);
    const float *before = from_device(&s.d, tower->parameters->values + p->offset, p->size * sizeof *before);
    must(adapters_merge(adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &changes, &error));
    const struct freeze_plan all = {.policy = &freeze_most_used, .top_k = settings.experts};
    must(adapters_freeze(adapters, &all, (struct rng){0}, &changes, &error));
    expect_floats(&s.d, "after a merge", tower->parameters->values + p->offset, before, p->size);
    for (int step = 1; step <= 2; step++) {
        must(adapters_step(adapters, s.state, &small_rule, &error));
        expect_integers(&s.d, "steps", tower->parameters->steps + p->first_segment, &step, 1);
        small_loss(&s, true);
    }
    const float *after = from_device(&s.d, tower->parameters->values + p->offset, p->size * sizeof *after);
    assert_memory_not_equal(after, before, p->size * sizeof *after);
    expert_changes_free(&changes);
    small_adapters_close(&s, adapters);
}

/* The balance loss changes the gradients of routers, noise matrices and all below by its own. */
TEST(balance_gradients_match_differences)
{
    struct adapter_settings settings = small_settings;
    settings.balance = BALANCE_CV;
    settings.balance_weight = 0.5f;
    small_adapters_check(&settings);
    settings.dropout = 0.25f;
    settings.top_k = 3;
    small_adapters_check(&settings);
    settings.top_k = settings.experts;
    small_adapters_check(&settings);
}

/* It is computed in training alone, once a block, times weight and share; no gate moves by it. */
TEST(balance_loss_is_added)
{
    float losses[3];
    for (int i = 0; i < 3; i++) {
        struct small s;
        struct adapter_settings settings = small_settings;
        settings.balance = i > 0 ? BALANCE_CV : BALANCE_NONE;
        settings.balance_weight = 2.0f;
        struct adapters *adapters = small_adapters_open(&s, 1, &settings);
        adapters_add_loss(adapters, s.loss, NULL, i == 2 ? 0.25f : 1.0f);
        losses[i] = small_loss(&s, false);
        small_adapters_close(&s, adapters);
    }
    assert_true(losses[1] > losses[0] + 0.1f);
    assert_true(fabsf((losses[2] - losses[0]) - 0.25f * (losses[1] - losses[0])) < 1e-4f);
}

/* Three whole steps with dropout and drawn noise. */
static void check_threads(enum routing_unit routing)
{
    uint64_t bits[3];
    struct adapter_settings settings = small_settings;
    settings.routing = routing;
    settings.dropout = 0.1f;
    settings.balance = BALANCE_CV;
    settings.balance_weight = 0.1f;
    settings.shared_expert = true;
    for (size_t threads = 1; threads <= 3; threads++) {
        struct small s;
        struct adapters *adapters = small_adapters_open(&s, threads, &settings);
        for (int step = 0; step < 3; step++) {
            small_loss(&s, true);
            digest(&s.d, s.loss, sizeof *s.loss);
            for (int t = 0; t < TOWERS; t++)
                digest(&s.d, adapters->towers[t].parameters->gradients,
                       adapters->towers[t].parameters->values_count * sizeof(float));
            must(adapters_step(adapters, s.state, &small_rule, &error));
        }
        for (int t = 0; t < TOWERS; t++)
            digest(&s.d, adapters->towers[t].parameters->values,
                   adapters->towers[t].parameters->values_count * sizeof(float));
        bits[threads - 1] = s.d.bits;
        small_adapters_close(&s, adapters);
        assert_true(bits[threads - 1] == bits[0]);
    }
}

TEST(bits_do_not_depend_on_threads)
{
    check_threads(ROUTING_PER_SAMPLE);
    check_threads(ROUTING_PER_TOKEN);
}
