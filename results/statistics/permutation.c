#include "results/statistics/permutation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"

#define SLACK 1e-12 /* of a mean */

/* The sums of n values over all 2^n choices of signs, sorted: adding a value merges the sums with −|value| and those with
 * +|value|, both sorted already. scratch has the size of sums. */
static void sorted_sums(const double *value, size_t n, double *sums, double *scratch)
{
    sums[0] = 0;
    for (size_t k = 0; k < n; k++) {
        size_t count = (size_t)1 << k, minus = 0, plus = 0;
        double shift = fabs(value[k]);
        for (size_t i = 0; i < 2 * count; i++) {
            bool take_minus = plus == count || (minus < count && sums[minus] - shift <= sums[plus] + shift);
            scratch[i] = take_minus ? sums[minus++] - shift : sums[plus++] + shift;
        }
        memcpy(sums, scratch, 2 * count * sizeof *sums);
    }
}

/* The number of pairs, one value of each sorted array, whose sum is at least bound. */
static double count_above(const double *left, size_t left_count, const double *right, size_t right_count, double bound)
{
    double count = 0; /* at most 2^40: exact */
    size_t begin = right_count;
    for (size_t i = 0; i < left_count; i++) {
        while (begin > 0 && left[i] + right[begin - 1] >= bound)
            begin--;
        count += (double)(right_count - begin);
    }
    return count;
}

static double count_flips(const double *difference, size_t n, double bound)
{
    size_t half = n / 2, left_count = (size_t)1 << half, right_count = (size_t)1 << (n - half);
    double *left = xmalloc((left_count + 2 * right_count) * sizeof *left), *right = left + left_count,
           *scratch = right + right_count;
    sorted_sums(difference, half, left, scratch);
    sorted_sums(difference + half, n - half, right, scratch);
    double p = ldexp(2 * count_above(left, left_count, right, right_count, bound), -(int)n); /* both signs: symmetric */
    free(left);
    return p;
}

static void draw_flips(const double *difference, size_t n, double bound, uint64_t seed, struct sign_flip_test *test)
{
    struct rng rng = rng_make(seed, RNG_RESAMPLING, 0, 0);
    uint64_t hits = 0, blocks = (n + 127) / 128;
    for (uint64_t draw = 0; draw < PERMUTATION_DRAWS; draw++) {
        double sum = 0;
        uint32_t words[4] = {0};
        for (size_t i = 0; i < n; i++) {
            if (i % 128 == 0)
                rng_block(&rng, draw * blocks + i / 128, words);
            sum += words[i % 128 / 32] >> i % 32 & 1 ? difference[i] : -difference[i];
        }
        hits += fabs(sum) >= bound;
    }
    test->p = (double)(hits + 1) / (PERMUTATION_DRAWS + 1);
    test->error = sqrt(test->p * (1 - test->p) / (PERMUTATION_DRAWS + 1));
}

struct sign_flip_test permutation_sign_flips(const double *difference, size_t n, uint64_t seed)
{
    struct sign_flip_test test = {.p = n ? 1 : (double)NAN, .exact = n <= PERMUTATION_EXACT};
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += difference[i];
    double bound = fabs(sum) - (double)n * SLACK;
    if (isnan(bound))
        test.p = bound;
    else if (bound > 0 && test.exact) /* else every flip reaches it */
        test.p = count_flips(difference, n, bound);
    else if (bound > 0)
        draw_flips(difference, n, bound, seed, &test);
    return test;
}

struct magnitude {
    double size;
    bool above;
    uint32_t rank; /* doubled, so that the mean of two is whole */
};

static int compare_magnitudes(const void *a, const void *b)
{
    const struct magnitude *left = a, *right = b;
    return (left->size > right->size) - (left->size < right->size);
}

/* Fills magnitudes with the differences that are not 0, sorted and ranked. */
static void rank_magnitudes(const double *difference, size_t n, struct magnitude *magnitudes,
                            struct signed_rank_test *test)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(difference[i]) > PERMUTATION_TIE)
            magnitudes[test->n++] = (struct magnitude){fabs(difference[i]), difference[i] > 0, 0};
    qsort(magnitudes, test->n, sizeof *magnitudes, compare_magnitudes);
    for (size_t begin = 0, end; begin < test->n; begin = end) {
        for (end = begin + 1; end < test->n && magnitudes[end].size - magnitudes[end - 1].size <= PERMUTATION_TIE;)
            end++;
        test->ties |= end - begin > 1;
        for (size_t i = begin; i < end; i++)
            magnitudes[i].rank = (uint32_t)(begin + end + 1); /* twice the mean of the ranks begin + 1 … end */
    }
}

/* P(sum of ranks <= w) over all signs; every rank and w have the factor unit. The distribution grows by a rank at a
 * time: half of it stays, half moves up. */
static double lower_tail(const struct magnitude *magnitudes, size_t n, uint32_t unit, uint64_t w)
{
    size_t size = (size_t)(w / unit) + 1;
    double *share = xcalloc(size, sizeof *share), tail = 0;
    share[0] = 1;
    for (size_t k = 0; k < n; k++) {
        size_t rank = magnitudes[k].rank / unit;
        for (size_t i = size; i-- > 0;)
            share[i] = (share[i] + (i >= rank ? share[i - rank] : 0)) / 2;
    }
    for (size_t i = 0; i < size; i++)
        tail += share[i];
    free(share);
    return tail;
}

/* The mean is n(n + 1)/4, the variance Σ rank²/4; doubled ranks. */
static double normal_tail(const struct magnitude *magnitudes, size_t n, uint64_t w)
{
    double total = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        total += magnitudes[i].rank;
        squares += (double)magnitudes[i].rank * magnitudes[i].rank;
    }
    double z = (total / 2 - (double)w) / (sqrt(squares) / 2);
    return erfc(z * M_SQRT1_2) / 2;
}

static void test_ranks(const struct magnitude *magnitudes, struct signed_rank_test *test)
{
    uint64_t above = 0, total = 0;
    for (size_t i = 0; i < test->n; i++) {
        above += magnitudes[i].above ? magnitudes[i].rank : 0;
        total += magnitudes[i].rank;
    }
    test->statistic = (double)above / 2;
    uint64_t w = above < total - above ? above : total - above; /* the distribution is symmetric */
    test->exact = test->n <= PERMUTATION_RANKS;
    test->p = fmin(1, 2 * (test->exact ? lower_tail(magnitudes, test->n, test->ties ? 1 : 2, w)
                                       : normal_tail(magnitudes, test->n, w)));
}

struct signed_rank_test permutation_signed_ranks(const double *difference, size_t n)
{
    struct signed_rank_test test = {.p = 1, .exact = true};
    struct magnitude *magnitudes = xmalloc(n * sizeof *magnitudes);
    rank_magnitudes(difference, n, magnitudes, &test);
    if (test.n > 0)
        test_ranks(magnitudes, &test);
    free(magnitudes);
    return test;
}
