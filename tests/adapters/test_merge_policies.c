/* Policies that merge the best pair of a block: which pair it is, and what it replaces. */
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "tests/test.h"

enum { EXPERTS = 4, SQUARE = EXPERTS * EXPERTS, TARGETS = 6 };

static struct error error;

static void must(status result)
{
    if (result != OK)
        fail_msg("%s", error.message);
}

/* The caller frees the merges. */
static struct merge_list plan(const char *name, const struct merge_view *view)
{
    const struct merge_policy *policy;
    struct merge_list list = {0};
    must(merge_policy_find(&policy, name, &error));
    policy->plan(view, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &list);
    return list;
}

struct expected {
    size_t block;
    int first, second, target;
    enum merge_skip skip;
};

static void expect_merge(const struct merge *found, struct expected expected)
{
    assert_int_equal(found->block, expected.block);
    assert_int_equal(found->sources, 2);
    assert_int_equal(found->source[0], expected.first);
    assert_int_equal(found->source[1], expected.second);
    assert_int_equal(found->target, expected.target);
    assert_int_equal(found->skip, expected.skip);
}

static void expect_one(const char *name, const struct merge_view *view, struct expected expected)
{
    struct merge_list list = plan(name, view);
    assert_int_equal(list.count, 1);
    expect_merge(list.merges, expected);
    free(list.merges);
}

static void expect_none(const char *name, const struct merge_view *view)
{
    struct merge_list list = plan(name, view);
    assert_int_equal(list.count, 0);
    free(list.merges);
}

TEST(coactivated_takes_those_chosen_together)
{
    static const struct {
        int32_t pairs[SQUARE], counts[EXPERTS], frozen[EXPERTS];
        struct expected merge;
    } cases[] = {
        /* 1 and 3, although 0 is used most */
        {{90, 1, 2, 3, 1, 50, 2, 6, 2, 2, 4, 4, 3, 6, 4, 40}, {90, 50, 4, 40}, {0}, {0, 1, 3, 2, MERGE_DONE}},
        /* 2 is used least, but frozen */
        {{9, 1, 2, 3, 1, 50, 2, 6, 2, 2, 4, 4, 3, 6, 4, 40}, {9, 50, 4, 40}, {0, 0, 1}, {0, 1, 3, 0, MERGE_DONE}},
        {{9, 5, 1, 1, 5, 9, 1, 1, 1, 1, 7, 5, 1, 1, 5, 7}, {9, 9, 7, 7}, {0}, {0, 0, 1, 2, MERGE_DONE}}, /* a tie */
        {{9, 1, 5, 1, 1, 9, 1, 5, 5, 1, 9, 1, 1, 5, 1, 9}, {9, 8, 9, 8}, {0}, {0, 0, 2, 1, MERGE_DONE}},
        {{9, 1, 5, 5, 1, 9, 1, 1, 5, 1, 9, 1, 5, 1, 1, 9}, {9, 8, 9, 8}, {0}, {0, 0, 2, 1, MERGE_DONE}},
        {{0, 5, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {3, 5, 9, 9}, {0}, {0, 0, 1, 0, MERGE_TARGET_IS_SOURCE}},
        {{0, 5, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
         {5, 5, 0, 0},
         {1, 1, 1, 1},
         {0, 0, 1, -1, MERGE_NO_FREE_EXPERT}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct merge_view view = {.blocks = 1,
                                  .experts = EXPERTS,
                                  .counts = cases[i].counts,
                                  .frozen = cases[i].frozen,
                                  .pairs = cases[i].pairs};
        expect_one("coactivated", &view, cases[i].merge);
    }
}

TEST(every_block_has_its_own_pair)
{
    static const int32_t counts[2 * EXPERTS] = {9, 9, 0, 9, 9, 0, 9, 9}, frozen[2 * EXPERTS] = {0},
                                    pairs[2 * SQUARE] = {[1] = 4, [4] = 4, [SQUARE + 11] = 4, [SQUARE + 14] = 4};
    struct merge_list list =
        plan("coactivated",
             &(struct merge_view){.blocks = 2, .experts = EXPERTS, .counts = counts, .frozen = frozen, .pairs = pairs});
    assert_int_equal(list.count, 2);
    expect_merge(&list.merges[0], (struct expected){0, 0, 1, 2, MERGE_DONE});
    expect_merge(&list.merges[1], (struct expected){1, 2, 3, 1, MERGE_DONE});
    free(list.merges);
}

TEST(coactivated_needs_two_that_were_chosen_together)
{
    static const int32_t alone[SQUARE] = {[0] = 9, [5] = 8, [10] = 7, [15] = 6}, counts[EXPERTS] = {9, 8, 7, 6},
                         two[4] = {3, 3, 3, 3}, frozen[EXPERTS] = {0};
    struct merge_view view = {.blocks = 1, .experts = EXPERTS, .counts = counts, .frozen = frozen, .pairs = alone};
    expect_none("coactivated", &view);
    view.experts = 1;
    expect_none("coactivated", &view);
    view.experts = 2; /* no third one to replace */
    view.pairs = two;
    expect_one("coactivated", &view, (struct expected){0, 0, 1, 1, MERGE_TARGET_IS_SOURCE});
}

TEST(downstream_takes_those_with_the_same_followers)
{
    static const struct {
        int32_t next[SQUARE], counts[EXPERTS], frozen[EXPERTS];
        struct expected merge;
    } cases[] = {
        /* 1 and 3 go the same way, 0 and 2 more often another one */
        {{90, 90, 10, 0, 0, 1, 0, 2, 90, 10, 90, 0, 1, 2, 0, 4}, {9, 5, 1, 7}, {0}, {0, 1, 3, 2, MERGE_DONE}},
        {{90, 90, 10, 0, 0, 1, 0, 2, 90, 10, 90, 0, 1, 2, 0, 4}, {3, 5, 1, 7}, {0, 0, 1}, {0, 1, 3, 0, MERGE_DONE}},
        /* 1 and 2 alike, but for a factor; so are 0 and 3: the lowest first one */
        {{1, 1, 0, 0, 0, 0, 1, 2, 0, 0, 3, 6, 7, 7, 0, 0}, {8, 5, 6, 7}, {0}, {0, 0, 3, 1, MERGE_DONE}},
        {{1, 1, 0, 0, 3, 3, 0, 0, 5, 5, 0, 0, 7, 7, 0, 0}, {8, 9, 6, 7}, {0}, {0, 0, 1, 2, MERGE_DONE}},
        {{1, 1, 0, 0, 3, 3, 0, 0, 5, 5, 0, 0, 7, 7, 0, 0}, {8, 9, 6, 7}, {0, 0, 1}, {0, 0, 1, 3, MERGE_DONE}},
        {{1, 1, 0, 0, 3, 3, 0, 0, 5, 5, 0, 0, 7, 7, 0, 0},
         {8, 9, 6, 7},
         {1, 1, 1, 1},
         {0, 0, 1, -1, MERGE_NO_FREE_EXPERT}},
    };
    static const int32_t none[EXPERTS] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t counts[2 * EXPERTS] = {0}, frozen[2 * EXPERTS] = {0};
        memcpy(counts, cases[i].counts, sizeof none);
        memcpy(frozen, cases[i].frozen, sizeof none);
        struct merge_view view = {
            .blocks = 2, .experts = EXPERTS, .counts = counts, .frozen = frozen, .next = cases[i].next};
        expect_one("downstream", &view, cases[i].merge); /* and nothing of the last block, which has no next one */
    }
}

TEST(downstream_needs_a_next_block_and_common_followers)
{
    static const int32_t apart[SQUARE] = {[0] = 9, [5] = 8, [10] = 7, [15] = 6}, counts[2 * EXPERTS] = {9, 8, 7, 6},
                         two[4] = {3, 3, 3, 3}, frozen[2 * EXPERTS] = {0};
    struct merge_view view = {.blocks = 2, .experts = EXPERTS, .counts = counts, .frozen = frozen, .next = apart};
    expect_none("downstream", &view);
    view.experts = 1;
    expect_none("downstream", &view);
    view.experts = 2; /* no third one to replace */
    view.next = two;
    expect_one("downstream", &view, (struct expected){0, 0, 1, 1, MERGE_TARGET_IS_SOURCE});
    view.blocks = 1;
    expect_none("downstream", &view);
}

/* Two blocks whose highest pair is 0 and 1 for every policy. */
static const int32_t target_counts[2 * TARGETS] = {9, 8, 1, 2, 3, 4, 9, 8, 1, 2, 3, 4},
                                       target_frozen[2 * TARGETS] = {0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1},
                                       target_pairs[2 * TARGETS * TARGETS] =
                                           {[1] = 5, [TARGETS] = 5, [37] = 5, [42] = 5},
                                       target_next[2 * TARGETS * TARGETS] = {[0] = 5, [TARGETS] = 5};
static const float target_similarity[2 * TARGETS * TARGETS] = {[1] = 1, [TARGETS] = 1, [37] = 1, [42] = 1};

static const struct merge_view target_view = {.blocks = 2,
                                              .experts = TARGETS,
                                              .counts = target_counts,
                                              .frozen = target_frozen,
                                              .pairs = target_pairs,
                                              .next = target_next,
                                              .similarity = target_similarity};

/* How often each expert of the first block is the target; in the second one all but the sources are frozen. */
static void count_targets(const struct merge_policy *policy, const struct options *options, size_t *drawn)
{
    for (uint32_t iteration = 0; iteration < 400; iteration++) {
        struct merge_call call = {.options = options, .rng = rng_make(1, RNG_POLICY, 0, iteration)};
        struct merge_list list = {0};
        policy->plan(&target_view, &call, &list);
        assert_true(list.count > 0);
        assert_in_range(list.merges[0].target, 0, TARGETS - 1);
        assert_int_equal(list.merges[0].skip, MERGE_DONE);
        drawn[list.merges[0].target]++;
        for (size_t i = 1; i < list.count; i++)
            expect_merge(&list.merges[i], (struct expected){1, 0, 1, -1, MERGE_NO_FREE_EXPERT});
        free(list.merges);
    }
}

TEST(random_targets_are_neither_source_nor_frozen)
{
    static const char *const names[] = {"most_used", "similar", "coactivated", "downstream"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct merge_policy *policy;
        struct options *options;
        size_t drawn[TARGETS] = {0};
        must(merge_policy_find(&policy, names[i], &error));
        must(options_create(&options, policy->options, &error));
        assert_string_equal(options_text(options, "target"), "least_used");
        must(options_set(options, "target", "random_free", "test", &error));
        count_targets(policy, options, drawn);
        for (size_t e = 0; e < TARGETS; e++)
            if (e < 3)
                assert_int_equal(drawn[e], 0); /* sources, and a frozen one */
            else
                assert_in_range(drawn[e], 100, 170); /* 400 draws of 3 */
        options_destroy(options);
    }
}

/* The least used expert, also where it is frozen; in a block of frozen experts, too. */
TEST(the_least_used_of_all_may_be_frozen)
{
    static const int32_t counts[] = {9, 7, 0, 1, 9, 7, 3, 1}, frozen[] = {0, 0, 1, 0, 1, 1, 1, 1};
    static const struct merge_view view = {.blocks = 2, .experts = 4, .counts = counts, .frozen = frozen};
    static const struct {
        const char *target;
        struct expected expected[2];
    } cases[] = {{"least_used", {{0, 0, 1, 3, MERGE_DONE}, {1, 0, 1, -1, MERGE_NO_FREE_EXPERT}}},
                 {"least_used_any", {{0, 0, 1, 2, MERGE_DONE}, {1, 0, 1, 3, MERGE_DONE}}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options *options;
        struct merge_list list = {0};
        must(options_create(&options, policy_most_used.options, &error));
        must(options_set(options, "target", cases[i].target, "test", &error));
        policy_most_used.plan(&view, &(struct merge_call){.options = options}, &list);
        assert_int_equal(list.count, 2);
        for (size_t b = 0; b < 2; b++)
            expect_merge(&list.merges[b], cases[i].expected[b]);
        free(list.merges);
        options_destroy(options);
    }
}

/* The sources and the target of the control are three experts. */
TEST(random_draws_three_experts)
{
    const struct merge_policy *policy;
    size_t sources[TARGETS] = {0};
    must(merge_policy_find(&policy, "random", &error));
    for (uint32_t iteration = 0; iteration < 400; iteration++) {
        struct merge_list list = {0};
        policy->plan(&target_view, &(struct merge_call){.rng = rng_make(1, RNG_POLICY, 0, iteration)}, &list);
        assert_int_equal(list.count, 2);
        const struct merge *merge = &list.merges[0];
        assert_int_equal(merge->sources, 2);
        assert_int_not_equal(merge->source[0], merge->source[1]);
        assert_int_not_equal(merge->target, 2);
        for (size_t i = 0; i < 2; i++) {
            assert_int_not_equal(merge->source[i], merge->target);
            sources[merge->source[i]]++;
        }
        free(list.merges);
    }
    for (size_t e = 0; e < TARGETS; e++)
        assert_in_range(sources[e], 100, 170); /* 800 draws of 6; frozen ones may be sources */
}
