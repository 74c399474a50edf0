/* Blocks that share experts, a router and its decisions: the same as blocks of their own with equal weights; gradients,
 * counts, and what a way through them is. */
#include "adapters/adapter.h"
#include "adapters/experts/expert.h"
#include "adapters/routers/router.h"
#include "adapters/statistics.h"
#include "tests/adapters/small_adapters.h"

#include <string.h>

enum { BLOCKS = 4 };

/* The small model with more blocks. */
static struct adapters *open_deep(struct small *s, const char *form)
{
    const struct adapter_settings settings = small_settings_of(form);
    struct clip_dimensions deep = small_dimensions;
    deep.image_blocks = deep.text_blocks = BLOCKS;
    small_open_of(s, 2, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU, &deep);
    return small_adapters_add(s, &settings);
}

/* Counts add up, and whoever was used in one of the blocks is updated. */
static void expect_counts_of_all(struct small *s, const struct adapter_tower *shared, const struct adapter_tower *apart)
{
    size_t experts = shared->adapters->settings.experts, run = apart->blocks / shared->blocks, single = 0;
    for (size_t b = 0; b < shared->blocks; b++) {
        int32_t counts[8] = {0}, used[8] = {0};
        for (size_t i = b * run; i < (b + 1) * run; i++) {
            const int32_t *c = from_device(&s->d, apart->banks[i].counts, experts * sizeof *c),
                          *u = from_device(&s->d, apart->banks[i].used, experts * sizeof *u);
            for (size_t e = 0; e < experts; e++) {
                counts[e] += c[e];
                used[e] |= u[e];
                single += i % run < run - 1 && u[e];
            }
        }
        expect_integers(&s->d, "counts", shared->banks[b].counts, counts, experts);
        expect_integers(&s->d, "used", shared->banks[b].used, used, experts);
    }
    assert_true(single > 0);
}

/* Features and the loss, to the last bit. */
static void check_twins(const char *form, size_t banks)
{
    struct small s;
    struct adapters *apart = open_deep(&s, form), *shared;
    struct adapter_settings settings = apart->settings;
    settings.place.banks = banks;
    shared = small_adapters_add(&s, &settings);
    for (int t = 0; t < TOWERS; t++)
        group_spread(&s.d, shared->towers[t].parameters, apart->towers[t].parameters, BLOCKS / banks);
    float loss = small_loss(&s, true);
    small_adapters_use(&s, apart);
    assert_true(small_loss(&s, true) == loss);
    for (int t = 0; t < TOWERS; t++) {
        if (!adapters_in_tower(shared, (enum tower)t))
            continue;
        expect_sums_of_gradients(&s.d, shared->towers[t].parameters, apart->towers[t].parameters, BLOCKS / banks, 1e-4);
        expect_counts_of_all(&s, &shared->towers[t], &apart->towers[t]);
        const float *of_apart = small_features(&s, (enum tower)t);
        small_adapters_use(&s, shared);
        assert_memory_equal(small_features(&s, (enum tower)t), of_apart, tensor_bytes(&s.features[t]));
        small_adapters_use(&s, apart);
    }
    adapters_destroy(apart);
    small_adapters_close(&s, shared);
}

TEST(sharing_is_the_same_as_equal_weights)
{
    check_twins("top_k=1 dropout=0.25 shared_expert=true balance_loss=cv balance_weight=0.3", 2);
    check_twins("kind=ffn router=softmax_topk routing=per_token capacity=1.2 router_noise=0.2 balance_loss=widenet "
                "balance_weight=0.3 towers=image",
                2);
    check_twins("kind=ffn router=random_uniform top_k=1 routers=one", 1);
}

/* Of experts alone the twins show them. With 12 hidden units, none is so near 0 that a difference crosses it. */
static const char *const shared_decisions[] = {
    "bottleneck=12 balance_loss=cv balance_weight=0.5 share_across_blocks=1 share_routing=1 towers=image",
    "kind=ffn towers=text share_across_blocks=1 share_routing=1 router=softmax_topk routing=per_token capacity=0.8 "
    "balance_loss=widenet balance_weight=0.5"};

GRADIENTS_TEST(shared_decisions)

/* With one choice each, the weights of aligned outputs and the gates of noisy top-k are 1. */
ADAPTERS_TEST(weights_of_aligned_outputs_are_shared, 2, "kind=ffn share_across_blocks=1 share_routing=1 top_k=1")
{
    const struct adapter_settings settings = small_settings_of(
        "kind=ffn share_across_blocks=1 share_routing=1 top_k=1 router=softmax_topk aligned_output=shared");
    struct adapters *softmax = small_adapters_add(s, &settings);
    group_spread(&s->d, adapters->towers[TOWER_IMAGE].parameters, softmax->towers[TOWER_IMAGE].parameters, 1);
    const float *aligned = small_features(s, TOWER_IMAGE);
    small_adapters_use(s, adapters);
    assert_memory_equal(small_features(s, TOWER_IMAGE), aligned, tensor_bytes(&s->features[TOWER_IMAGE]));
    adapters_destroy(softmax);
}

/* A decision is counted once, whatever number of blocks uses it. In evaluation, the experts that were chosen
 * are kept by decision. */
TEST(decisions_are_counted_and_kept_once)
{
    static const char *const sharings[] = {
        "share_across_blocks=1", "share_across_blocks=2", "share_across_blocks=1 share_routing=2",
        "share_across_blocks=2 share_routing=2", "share_across_blocks=1 share_routing=1"};
    for (size_t i = 0; i < sizeof sharings / sizeof *sharings; i++) {
        struct small s;
        struct adapters *adapters = open_deep(&s, sharings[i]);
        const struct adapter_place *place = &adapters->settings.place;
        const struct adapter_tower *tower = &adapters->towers[TOWER_IMAGE];
        size_t decisions = place->decisions > 0 ? place->decisions : BLOCKS, banks = place->banks;
        size_t experts = SMALL_EXPERTS, all = banks * experts;
        must(adapters_collect(adapters, NEEDS_PAIR_COUNTS | NEEDS_NEXT_COUNTS | NEEDS_PROBES, &s.d.memory, &error));
        assert_int_equal(adapters_choices(adapters, TOWER_IMAGE), decisions * SMALL_TOP_K);
        small_loss(&s, false);
        struct adapter_counts counts = adapters_counts(adapters, TOWER_IMAGE);
        assert_int_equal(counts.n, all);
        assert_int_equal(total_of(&s, counts.counts, all), decisions * SMALL_IMAGES * 2);
        assert_int_equal(total_of(&s, tower->statistics.pairs, all * experts), decisions * SMALL_IMAGES * 4);
        assert_int_equal(total_of(&s, tower->statistics.next, all * experts), (banks - 1) * SMALL_IMAGES * 4);

        size_t n = adapters_choices(adapters, TOWER_IMAGE) * SMALL_IMAGES;
        int32_t *choices = room(&s.d, (n + 1) * sizeof *choices), guard[1] = {77};
        must(s.d.ops->upload(s.d.backend, choices + n, guard, sizeof guard, &error));
        adapters_keep_choices(adapters, TOWER_IMAGE, choices, NULL);
        small_encode(&s);
        const int32_t *kept = from_device(&s.d, choices, (n + 1) * sizeof *kept);
        for (size_t k = 0; k < n; k++)
            assert_between(kept[k], 0, experts - 1);
        assert_int_equal(kept[n], 77);
        small_adapters_close(&s, adapters);
    }
}

static float loss_of(const char *form)
{
    struct small s;
    struct adapters *adapters = open_deep(&s, form);
    float loss = small_loss(&s, false);
    small_adapters_close(&s, adapters);
    return loss;
}

/* WideNet, Equation 8: the sum is over routing operations. */
TEST(balance_counts_once_for_a_decision)
{
#define BALANCE " balance_loss=cv balance_weight=1"
#define ONE "share_across_blocks=1 blocks=first_1"
#define ALL "share_across_blocks=1 share_routing=1"
    float one = loss_of(ONE BALANCE) - loss_of(ONE), all = loss_of(ALL BALANCE) - loss_of(ALL);
    assert_true(one > 0.01f);
    if (!(all > one * 0.999f && all < one * 1.001f))
        fail_msg("the balance loss of one block is %g, of all with its decision %g", (double)one, (double)all);
}

/* A part of what is in a tensor counts as written; whether a way through the tower is another one by it. */
static bool changes_the_way(const struct adapters *adapters, struct adapter_identity *identity, size_t tensor,
                            size_t part)
{
    static const int32_t chosen[BLOCKS * 2] = {0, 1, 2, 1, 3, 1, 4, 0};
    must(adapter_identity_read(identity, &error));
    uint64_t before = adapter_identity_of(identity, TOWER_IMAGE, SMALL_TASK, chosen);
    struct expert_slice slice = expert_slice(adapters, TOWER_IMAGE, tensor, part);
    parameters_write(adapters->towers[TOWER_IMAGE].parameters, slice.offset, slice.size);
    must(adapter_identity_read(identity, &error));
    return adapter_identity_of(identity, TOWER_IMAGE, SMALL_TASK, chosen) != before;
}

/* Of the experts of its bank that a decision chose, and its task's routers. */
TEST(a_way_is_what_it_is_decided_on)
{
    static const struct {
        const char *form, *on_the_way; /* x, by bank and expert */
    } cases[] = {{"", "xx....xx...x.x.x...x"},
                 {"share_across_blocks=2", "xxx..xx.xx"},
                 {"share_across_blocks=1 share_routing=1", "xx..."},
                 {"share_across_blocks=1 share_routing=2", "xxx.."},
                 {"share_across_blocks=2 share_routing=2", "xx....xx.."}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct small s;
        struct adapters *adapters = open_deep(&s, cases[i].form);
        const struct expert_bank *banks = adapters->towers[TOWER_IMAGE].banks;
        struct adapter_identity identity;
        adapter_identity_create(&identity, adapters);
        for (size_t k = 0; k < strlen(cases[i].on_the_way); k++)
            assert_int_equal(
                changes_the_way(adapters, &identity,
                                k % 2 == 0 ? banks[k / 5].parts[EXPERT_UP_BIAS] : banks[k / 5].parts[EXPERT_DOWN_BIAS],
                                k % 5),
                cases[i].on_the_way[k] == 'x');
        for (size_t task = 0; task < SMALL_TASKS; task++)
            assert_int_equal(changes_the_way(adapters, &identity, banks[0].routers, task), task == SMALL_TASK);
        adapter_identity_free(&identity);
        small_adapters_close(&s, adapters);
    }
}
