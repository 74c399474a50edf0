/* Policies that merge the best pair of a block: which pair it is, and what it replaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "adapters/merge.h"

enum { EXPERTS = 4, SQUARE = EXPERTS * EXPERTS };

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
    must(policy->plan(view, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &list, &error));
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

static void coactivated_takes_those_chosen_together(void **state)
{
    (void)state;
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

static void every_block_has_its_own_pair(void **state)
{
    (void)state;
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

static void coactivated_needs_two_that_were_chosen_together(void **state)
{
    (void)state;
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

static void downstream_takes_those_with_the_same_followers(void **state)
{
    (void)state;
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

static void downstream_needs_a_next_block_and_common_followers(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coactivated_takes_those_chosen_together),
        cmocka_unit_test(every_block_has_its_own_pair),
        cmocka_unit_test(coactivated_needs_two_that_were_chosen_together),
        cmocka_unit_test(downstream_takes_those_with_the_same_followers),
        cmocka_unit_test(downstream_needs_a_next_block_and_common_followers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
