/* The experts' bank and hook: sizes, settings, counts, gradients, bits. What steps change and leave is in replay_model. */
#include "adapters/merge.h"
#include "adapters/routers/router.h"
#include "tests/adapters/small_adapters.h"

#include <math.h>
#include <string.h>

TEST(values_of_vit_b_16_are_the_papers)
{
    const struct adapter_settings paper = {.experts = 55, .top_k = 2, .tasks = 11, .bottleneck = 64};
    assert_int_equal(adapters_count_values(&vit_b_16, &paper), 127649280);
}

/* Both weights of an expert in 12 blocks of 768 and 12 of 512; what goes through slots is rounded anew each time. */
TEST(bytes_of_experts_in_bf16)
{
    static const struct {
        const char *words;
        size_t experts;
    } cases[] = {{"experts=55 bottleneck=64", 55},
                 {"experts=55 bottleneck=64 shared_expert=true", 56},
                 {"experts=55 bottleneck=64 shared_expert=true routing=per_token", 1},
                 {"bottleneck=136 shared_expert=true routing=per_token", 0}, /* more than 128 hidden units */
                 {"router=random_uniform routers=one experts=8 top_k=1 bottleneck=64", 9}, /* and their mean */
                 {"kind=ffn router=random_uniform routers=one experts=8 top_k=1", 0}};
    const size_t one = 2 * 12 * (2 * 64 * 768 + 2 * 64 * 512);
    assert_int_equal(55 * one, 216268800);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct adapter_settings settings = small_settings_of(cases[i].words);
        assert_int_equal(adapters_rounded_bytes(&vit_b_16, &settings), cases[i].experts * one);
    }
}

#define FEW .experts = 2, .top_k = 1, .tasks = 1
#define FFN .kind = &expert_ffn, FEW, .input = EXPERT_INPUT_POST_LN
DEVICE_TEST(impossible_settings_are_refused)
{
    static const struct {
        struct adapter_settings settings;
        const char *words[2];
    } cases[] = {
        {{.experts = 2, .top_k = 3, .tasks = 1, .bottleneck = 8}, {"top_k is 3", "2 experts"}},
        {{.experts = 0, .top_k = 1, .tasks = 1, .bottleneck = 8}, {"experts", "at least 1"}},
        {{.experts = 2, .top_k = 0, .tasks = 1, .bottleneck = 8}, {"top_k", "at least 1"}},
        {{.experts = 2, .top_k = 1, .tasks = 0, .bottleneck = 8}, {"tasks", "at least 1"}},
        {{FEW}, {"bottleneck", "at least 1"}},
        {{FEW, .bottleneck = 8, .dropout = 1}, {"dropout", "below 1"}},
        {{FEW, .bottleneck = 8, .dropout = -0.1f}, {"dropout", "-0.1"}},
        {{FEW, .bottleneck = 6, .dropout = 0.1f}, {"bottleneck", "6"}},
        {{FEW, .bottleneck = 8, .router = &router_softmax_topk, .balance = BALANCE_CV},
         {"softmax_topk", "balance_loss is cv"}},
        {{FEW, .bottleneck = 8, .routing = ROUTING_PER_TOKEN, .gate_input = GATE_MEAN},
         {"per_token", "decides for itself"}},
        {{FFN, .scale = 0.1f}, {"scale 1", "0.1"}},
        {{FFN, .scale = 1, .activation = ACTIVATION_GELU, .dropout = 0.1f}, {"ffn", "no dropout"}},
        {{FFN, .scale = 1}, {"ffn", "activation"}},
        {{.experts = 1, .top_k = 1, .tasks = 1, .bottleneck = 8, .balance = BALANCE_CV},
         {"nothing to balance", "none"}},
        {{.experts = SIZE_MAX / 2, .top_k = 1, .tasks = 1, .bottleneck = SIZE_MAX / 2},
         {"larger than any memory", "down_proj"}},
        {{.experts = 1 << 20, .top_k = 1, .tasks = 1, .bottleneck = 1 << 10}, {"MiB", "model"}},
    };
    struct arena memory;
    must(d->ops->arena_create(d->backend, &memory, (size_t)1 << 24, "model", &error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adapters *adapters = NULL;
        bool large = cases[i].settings.experts > 3;
        must_refuse(adapters_create(&adapters, d->backend, &memory, &small_dimensions, &cases[i].settings,
                                    PARAMETERS_TRAINED, &error),
                    large ? ERROR_MEMORY : ERROR_ARGUMENT, cases[i].words[0], cases[i].words[1]);
        assert_null(adapters);
    }
    d->ops->arena_destroy(d->backend, &memory);
}

ADAPTERS_TEST(fresh_adapters_change_nothing, 2, "")
{
    for (int t = 0; t < TOWERS; t++)
        small_clear(s, adapters->towers[t].parameters, 0, adapters->towers[t].parameters->values_count);
    must(adapters_initialize(adapters, NULL, 7, &error));
    for (int t = 0; t < TOWERS; t++) {
        struct expert_slice down =
            expert_slice(adapters, (enum tower)t, adapters->towers[t].banks[0].parts[EXPERT_DOWN], 0);
        const float *values = slice_values(s, adapters, (enum tower)t, down);
        float bound = 1.0f / sqrtf((float)adapters->towers[t].width), largest = 0;
        for (size_t i = 0; i < down.size; i++)
            largest = fmaxf(largest, fabsf(values[i]));
        assert_true(largest <= bound && largest > 0.9f * bound);
    }
    const float *with = small_features(s, TOWER_IMAGE);
    s->hooks[TOWER_IMAGE] = s->hooks[TOWER_TEXT] = NULL;
    assert_memory_equal(small_features(s, TOWER_IMAGE), with, tensor_bytes(&s->features[TOWER_IMAGE]));
}

ADAPTERS_TEST(samples_without_a_router_are_the_original_clip, 2, "")
{
    size_t embed = small_dimensions.embed;
    small_set_routers(s, TOWER_IMAGE, (const int32_t[]){2, -1, 0});
    const float *mixed = small_features(s, TOWER_IMAGE);
    small_expect_parts(s);
    small_set_routers(s, TOWER_IMAGE, (const int32_t[]){2, 2, 2});
    assert_memory_equal(small_features(s, TOWER_IMAGE), mixed, embed * sizeof *mixed);
    s->hooks[TOWER_IMAGE] = NULL;
    const float *plain = small_features(s, TOWER_IMAGE);
    for (size_t i = 0; i < SMALL_IMAGES; i++)
        assert_int_equal(memcmp(plain + i * embed, mixed + i * embed, embed * sizeof *plain) == 0, i == 1);
}

ADAPTERS_TEST(counts_are_per_task, 2, "")
{
    const struct expert_bank *bank = &adapters->towers[TOWER_TEXT].banks[1];
    small_loss(s, false);
    small_loss(s, false);
    small_encode(s); /* evaluation does not count */
    assert_int_equal(total_of(s, bank->counts, SMALL_EXPERTS), 2 * SMALL_PROMPTS * SMALL_TOP_K);

    small_loss(s, true);
    must(adapters_step(adapters, s->state, &small_rule, &error));
    must(adapters_begin_task(adapters, 2, &error));
    const struct parameters *group = adapters->towers[TOWER_TEXT].parameters;
    expect_integers(&s->d, "counts", bank->counts, (const int32_t[5]){0}, 5);
    expect_integers(&s->d, "flags of experts and routers", bank->used, (const int32_t[8]){0, 0, 0, 0, 0, 0, 0, 1}, 8);
    size_t bytes = group->values_count * sizeof(float);
    const float *zeros = from_device(&s->d, room(&s->d, bytes), bytes);
    expect_floats(&s->d, "first moment", group->first_moment, zeros, group->values_count);
    expect_floats(&s->d, "second moment", group->second_moment, zeros, group->values_count);
    expect_floats(&s->d, "step counts", group->steps, zeros, group->segments); /* 0 in either type */

    must_refuse(adapters_begin_task(adapters, SMALL_TASKS, &error), ERROR_ARGUMENT, "task 3");
}

/* Every stacked tensor that the task trains, along its gradient. With 12 or 20 hidden units, none is so near 0 that a
 * difference crosses it. */
static const char *const gradient_forms[] = {
    "",
    "dropout=0.25",
    "dropout=0.25 expert_input=post_ln top_k=3",
    "dropout=0.25 expert_input=post_ln top_k=5",
    "gate_input=mean",
    "gate_input=mean dropout=0.25 expert_input=post_ln top_k=3",
    "gate_input=mean dropout=0.25 expert_input=post_ln top_k=3 balance_loss=cv balance_weight=0.5 "
    "shared_expert=true bottleneck=20",
    "routing=per_token",
    "routing=per_token dropout=0.25 expert_input=post_ln top_k=3 bottleneck=20",
    "routing=per_token dropout=0.25 expert_input=post_ln top_k=3 bottleneck=20 balance_loss=cv balance_weight=0.5 "
    "shared_expert=true",
    "shared_expert=true dropout=0.25 bottleneck=20",
    "shared_expert=true dropout=0.25 bottleneck=12 expert_input=post_ln",
    "balance_loss=cv balance_weight=0.5",
    "balance_loss=cv balance_weight=0.5 dropout=0.25 top_k=3",
    "balance_loss=cv balance_weight=0.5 dropout=0.25 top_k=5",
};

GRADIENTS_TEST(gradient_forms)

ADAPTERS_TEST(the_shared_expert_starts_apart_from_the_others, 2, "shared_expert=true")
{
    must(adapters_initialize(adapters, NULL, 7, &error));
    for (int t = 0; t < TOWERS; t++) {
        const struct parameters *group = adapters->towers[t].parameters;
        const struct expert_bank *bank = &adapters->towers[t].banks[1];
        const float *values = small_values(s, group), *shared = values + group->list[bank->shared[EXPERT_DOWN]].offset;
        size_t n = group->list[bank->shared[EXPERT_DOWN]].size;
        for (size_t e = 0; e < SMALL_EXPERTS; e++)
            assert_memory_not_equal(shared, values + group->list[bank->parts[EXPERT_DOWN]].offset + e * n,
                                    n * sizeof *shared);
    }
}

/* The same as the only expert there is, which has gate 1 too, beside one that adds nothing; also for a sample without a
 * router, which uses neither. */
ADAPTERS_TEST(the_shared_expert_is_an_expert, 2, "experts=1 top_k=1")
{
    const struct adapter_settings settings = small_settings_of("experts=1 top_k=1 shared_expert=true");
    struct adapters *shared;
    must(adapters_create(&shared, s->d.backend, &s->d.memory, &small_dimensions, &settings, PARAMETERS_FROZEN, &error));
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++) {
            const struct parameters *group = adapters->towers[t].parameters;
            struct parameters *to = shared->towers[t].parameters;
            const size_t *targets = shared->towers[t].banks[b].shared;
            for (size_t i = 0; i < 4; i++) {
                const struct parameter *from = &group->list[expert_tensor(adapters, (enum tower)t, b, i)];
                must(parameters_upload(to, &to->list[targets[i]], small_values(s, group) + from->offset, &error));
            }
        }
    small_set_routers(s, TOWER_IMAGE, (const int32_t[]){1, -1, 0});
    const float *expected = small_features(s, TOWER_IMAGE);
    small_adapters_use(s, shared);
    assert_memory_equal(small_features(s, TOWER_IMAGE), expected, tensor_bytes(&s->features[TOWER_IMAGE]));
    adapters_destroy(shared);
}

/* Every step moves it, whatever is frozen; merging leaves it alone. */
ADAPTERS_TEST(the_shared_expert_is_neither_frozen_nor_merged, 2, "shared_expert=true")
{
    struct merge_plan plan = {.combiner = NULL};
    struct expert_changes changes = {0};
    must(merge_policy_find(&plan.policy, "most_used", &error));
    const struct adapter_tower *tower = &adapters->towers[TOWER_TEXT];
    const struct parameter *p = &tower->parameters->list[tower->banks[1].shared[EXPERT_UP_BIAS]];
    small_loss(s, true);
    const float *before = from_device(&s->d, tower->parameters->values + p->offset, p->size * sizeof *before);
    must(adapters_merge(adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &changes, &error));
    const struct freeze_plan all = {.policy = &freeze_most_used, .top_k = SMALL_EXPERTS};
    must(adapters_freeze(adapters, &all, (struct rng){0}, &changes, &error));
    expect_floats(&s->d, "after a merge", tower->parameters->values + p->offset, before, p->size);
    for (int step = 1; step <= 2; step++) {
        must(adapters_step(adapters, s->state, &small_rule, &error));
        expect_integers(&s->d, "steps", tower->parameters->steps + p->first_segment, &step, 1);
        small_loss(s, true);
    }
    const float *after = from_device(&s->d, tower->parameters->values + p->offset, p->size * sizeof *after);
    assert_memory_not_equal(after, before, p->size * sizeof *after);
    expert_changes_free(&changes);
}

/* It is computed in training alone, once a block, times weight and share; no gate moves by it. */
TEST(balance_loss_is_added)
{
    float losses[3];
    for (int i = 0; i < 3; i++) {
        struct small s;
        struct adapters *adapters = small_adapters_open(&s, 1, i > 0 ? "balance_loss=cv balance_weight=2" : "");
        adapters_add_loss(adapters, s.loss, NULL, i == 2 ? 0.25f : 1.0f);
        losses[i] = small_loss(&s, false);
        small_adapters_close(&s, adapters);
    }
    assert_true(losses[1] > losses[0] + 0.1f);
    assert_true(fabsf((losses[2] - losses[0]) - 0.25f * (losses[1] - losses[0])) < 1e-4f);
}

static const char *const forms_of_bits[] = {
    "dropout=0.1 balance_loss=cv balance_weight=0.1 shared_expert=true",
    "dropout=0.1 balance_loss=cv balance_weight=0.1 shared_expert=true routing=per_token"};

/* Three whole steps with dropout and drawn noise. */
ADAPTERS_TEST_OF(bits_do_not_depend_on_threads, ANY_THREADS, forms_of_bits)
{
    for (int step = 0; step < 3; step++) {
        small_loss(s, true);
        digest(&s->d, s->loss, sizeof *s->loss);
        for (int t = 0; t < TOWERS; t++)
            digest_gradients(&s->d, adapters->towers[t].parameters);
        must(adapters_step(adapters, s->state, &small_rule, &error));
    }
    for (int t = 0; t < TOWERS; t++)
        digest(&s->d, adapters->towers[t].parameters->values,
               adapters->towers[t].parameters->values_count * sizeof(float));
}
