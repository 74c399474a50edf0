/* Cuts into parts of equal size: what is planted is found, and no exchange of a pair makes it better. */
#include "core/rng.h"
#include "harness/scenario/label_split.h"
#include "tests/test.h"

enum { MOST = 100 };

/* Of n items; item i is of group i mod groups: similarities 1000 within a group, 0 between, and noise. */
struct items {
    size_t n;
    int32_t s[MOST * MOST];
};

static struct items planted(size_t n, size_t groups, int32_t noise)
{
    struct items items = {.n = n};
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            items.s[i * n + j] = items.s[j * n + i] = (i % groups == j % groups ? 1000 : 0) +
                                                      (int32_t)rng_below(&rng, i * n + j, 2 * (uint32_t)noise + 1) -
                                                      noise;
    return items;
}

struct parts {
    uint32_t of[MOST];
};

static struct parts cut(const struct items *items, size_t parts, enum partition_goal goal, uint64_t seed)
{
    struct parts cut = {{0}};
    partition_cut(
        &(struct class_partition){.similarity = items->s, .n = items->n, .parts = parts, .goal = goal, .seed = seed},
        cut.of);
    return cut;
}

static int64_t within(const struct items *items, const struct parts *cut)
{
    int64_t total = 0;
    for (size_t i = 0; i < items->n; i++)
        for (size_t j = 0; j < i; j++)
            total += cut->of[i] == cut->of[j] ? items->s[i * items->n + j] : 0;
    return total;
}

static void expect_balanced(const struct parts *cut, size_t n, size_t parts)
{
    size_t sizes[MOST] = {0};
    uint32_t highest = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(cut->of[i] < parts);
        sizes[cut->of[i]]++;
        assert_true(cut->of[i] <= highest + (i > 0)); /* numbered by their first item */
        highest = cut->of[i] > highest ? cut->of[i] : highest;
    }
    for (size_t p = 0; p < parts; p++)
        assert_true(sizes[p] == n / parts || sizes[p] == n / parts + 1);
}

TEST(planted_groups_are_found)
{
    struct items items = planted(100, 10, 100);
    struct parts together = cut(&items, 10, PARTITION_TOGETHER, 1), apart = cut(&items, 10, PARTITION_APART, 1);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(together.of[i], i % 10);
        for (size_t j = 0; j < i; j++) /* one of each group in each part */
            assert_false(apart.of[i] == apart.of[j] && i % 10 == j % 10);
    }
    expect_balanced(&together, 100, 10);
    expect_balanced(&apart, 100, 10);
}

/* The first half has a planted group each, every part of the second half two of each other group. */
TEST(mixed_is_half_together_and_half_apart)
{
    enum { N = 100, PARTS = 10, HALF = PARTS / 2 };
    struct items items = planted(N, PARTS, 100);
    struct parts mixed = cut(&items, PARTS, PARTITION_MIXED, 1);
    size_t of[PARTS][PARTS] = {0}; /* a part has of each group */
    for (size_t i = 0; i < N; i++)
        of[mixed.of[i]][i % PARTS]++;
    for (size_t p = 0; p < PARTS; p++)
        for (size_t group = 0; group < PARTS; group++)
            assert_int_equal(of[p][group], p < HALF ? (p == group ? 10 : 0) : (group < HALF ? 0 : 2));
}

/* Together above random above apart, and neither can be bettered by one exchange. */
TEST(goals_are_reached_on_noise)
{
    enum { N = 61, PARTS = 7 };
    struct items items = planted(N, 1, 5000);
    int64_t reached[3];
    for (int goal = PARTITION_TOGETHER; goal <= PARTITION_RANDOM; goal++) {
        struct parts found = cut(&items, PARTS, (enum partition_goal)goal, 3);
        expect_balanced(&found, N, PARTS);
        reached[goal] = within(&items, &found);
        for (size_t a = 0; goal != PARTITION_RANDOM && a < N; a++)
            for (size_t b = 0; b < a; b++) {
                struct parts exchanged = found;
                exchanged.of[a] = found.of[b];
                exchanged.of[b] = found.of[a];
                int64_t other = within(&items, &exchanged);
                assert_true(goal == PARTITION_TOGETHER ? other <= reached[goal] : other >= reached[goal]);
            }
    }
    assert_true(reached[PARTITION_TOGETHER] > reached[PARTITION_RANDOM] &&
                reached[PARTITION_RANDOM] > reached[PARTITION_APART]);
}

TEST(the_seed_decides)
{
    struct items items = planted(40, 1, 5000);
    struct parts other = cut(&items, 4, PARTITION_RANDOM, 2);
    for (int goal = PARTITION_TOGETHER; goal <= PARTITION_RANDOM; goal++) {
        struct parts first = cut(&items, 4, (enum partition_goal)goal, 1),
                     again = cut(&items, 4, (enum partition_goal)goal, 1);
        assert_memory_equal(&first, &again, sizeof first);
        assert_memory_not_equal(&first, &other, sizeof first);
    }
}

TEST(extreme_sizes)
{
    static const size_t sizes[][2] = {{1, 1}, {5, 1}, {5, 5}, {7, 6}, {2, 2}, {9, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int goal = PARTITION_TOGETHER; goal <= PARTITION_RANDOM; goal++) {
            struct items items = planted(sizes[i][0], 2, 10);
            struct parts found = cut(&items, sizes[i][1], (enum partition_goal)goal, 1);
            expect_balanced(&found, sizes[i][0], sizes[i][1]);
        }
}
