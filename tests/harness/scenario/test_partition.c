/* Cuts into parts of equal size: what is planted is found, and no exchange of a pair makes it better. */
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "harness/scenario/partition.h"
#include "tests/test.h"

/* n items in groups: item i is of group i mod groups; similarities 1000 within a group, 0 between, and noise. */
static int32_t *planted(size_t n, size_t groups, int32_t noise)
{
    int32_t *s = malloc(n * n * sizeof *s);
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            s[i * n + j] = s[j * n + i] = (i % groups == j % groups ? 1000 : 0) +
                                          (int32_t)rng_below(&rng, i * n + j, 2 * (uint32_t)noise + 1) - noise;
    return s;
}

static uint32_t *cut(const int32_t *s, size_t n, size_t parts, enum partition_goal goal, uint64_t seed)
{
    uint32_t *part_of = malloc(n * sizeof *part_of);
    struct class_partition partition = {.similarity = s, .n = n, .parts = parts, .goal = goal, .seed = seed};
    partition_cut(&partition, part_of);
    return part_of;
}

static int64_t within(const int32_t *s, size_t n, const uint32_t *part_of)
{
    int64_t total = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            total += part_of[i] == part_of[j] ? s[i * n + j] : 0;
    return total;
}

static void expect_balanced(const uint32_t *part_of, size_t n, size_t parts)
{
    size_t *sizes = calloc(parts, sizeof *sizes);
    uint32_t highest = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(part_of[i] < parts);
        sizes[part_of[i]]++;
        assert_true(part_of[i] <= highest + (i > 0)); /* numbered by their first item */
        highest = part_of[i] > highest ? part_of[i] : highest;
    }
    for (size_t p = 0; p < parts; p++)
        assert_true(sizes[p] == n / parts || sizes[p] == n / parts + 1);
    free(sizes);
}

TEST(planted_groups_are_found)
{
    int32_t *s = planted(100, 10, 100);
    uint32_t *together = cut(s, 100, 10, PARTITION_TOGETHER, 1), *apart = cut(s, 100, 10, PARTITION_APART, 1);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(together[i], i % 10);
    for (size_t i = 0; i < 100; i++) /* one of each group in each part */
        for (size_t j = 0; j < i; j++)
            assert_false(apart[i] == apart[j] && i % 10 == j % 10);
    expect_balanced(together, 100, 10);
    expect_balanced(apart, 100, 10);
    free(together);
    free(apart);
    free(s);
}

/* The first half has a planted group each, every part of the second half two of each other group. */
TEST(mixed_is_half_together_and_half_apart)
{
    enum { N = 100, PARTS = 10, HALF = PARTS / 2 };
    int32_t *s = planted(N, PARTS, 100);
    uint32_t *mixed = cut(s, N, PARTS, PARTITION_MIXED, 1);
    size_t of[PARTS][PARTS] = {0}; /* a part has of each group */
    for (size_t i = 0; i < N; i++)
        of[mixed[i]][i % PARTS]++;
    for (size_t p = 0; p < PARTS; p++)
        for (size_t group = 0; group < PARTS; group++)
            assert_int_equal(of[p][group], p < HALF ? (p == group ? 10 : 0) : (group < HALF ? 0 : 2));
    free(mixed);
    free(s);
}

/* Together above random above apart, and neither can be bettered by one exchange. */
TEST(goals_are_reached_on_noise)
{
    enum { N = 61, PARTS = 7 };
    int32_t *s = planted(N, 1, 5000);
    uint32_t *cuts[3];
    for (int goal = PARTITION_TOGETHER; goal <= PARTITION_RANDOM; goal++) {
        cuts[goal] = cut(s, N, PARTS, (enum partition_goal)goal, 3);
        expect_balanced(cuts[goal], N, PARTS);
    }
    int64_t together = within(s, N, cuts[PARTITION_TOGETHER]), apart = within(s, N, cuts[PARTITION_APART]),
            by_chance = within(s, N, cuts[PARTITION_RANDOM]);
    assert_true(together > by_chance && by_chance > apart);
    for (int goal = PARTITION_TOGETHER; goal <= PARTITION_APART; goal++)
        for (size_t a = 0; a < N; a++)
            for (size_t b = 0; b < a; b++) {
                uint32_t *part_of = cuts[goal], old = part_of[a];
                part_of[a] = part_of[b];
                part_of[b] = old;
                int64_t exchanged = within(s, N, part_of);
                assert_true(goal == PARTITION_TOGETHER ? exchanged <= together : exchanged >= apart);
                part_of[b] = part_of[a];
                part_of[a] = old;
            }
    for (int goal = PARTITION_TOGETHER; goal <= PARTITION_RANDOM; goal++)
        free(cuts[goal]);
    free(s);
}

TEST(the_seed_decides)
{
    int32_t *s = planted(40, 1, 5000);
    uint32_t *first = cut(s, 40, 4, PARTITION_RANDOM, 1), *again = cut(s, 40, 4, PARTITION_RANDOM, 1),
             *other = cut(s, 40, 4, PARTITION_RANDOM, 2), *one = cut(s, 40, 4, PARTITION_TOGETHER, 1),
             *same = cut(s, 40, 4, PARTITION_TOGETHER, 1);
    assert_memory_equal(first, again, 40 * sizeof *first);
    assert_memory_not_equal(first, other, 40 * sizeof *first);
    assert_memory_equal(one, same, 40 * sizeof *one);
    for (uint32_t **part_of = (uint32_t *[]){first, again, other, one, same, NULL}; *part_of != NULL; part_of++)
        free(*part_of);
    free(s);
}

TEST(extreme_sizes)
{
    static const size_t sizes[][2] = {{1, 1}, {5, 1}, {5, 5}, {7, 6}, {2, 2}, {9, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int goal = PARTITION_TOGETHER; goal <= PARTITION_RANDOM; goal++) {
            int32_t *s = planted(sizes[i][0], 2, 10);
            uint32_t *part_of = cut(s, sizes[i][0], sizes[i][1], (enum partition_goal)goal, 1);
            expect_balanced(part_of, sizes[i][0], sizes[i][1]);
            free(part_of);
            free(s);
        }
}
