#include "results/statistics/permutation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "results/statistics/statistics.h"

#define SLACK 1e-12 /* of a mean */
#define LEVEL 0.05  /* of what is planned */
#define POWER 0.8

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
    OWNED double *left = xmalloc((left_count + 2 * right_count) * sizeof *left);
    double *right = left + left_count, *scratch = right + right_count;
    sorted_sums(difference, half, left, scratch);
    sorted_sums(difference + half, n - half, right, scratch);
    return ldexp(2 * count_above(left, left_count, right, right_count, bound), -(int)n); /* both signs: symmetric */
}

/* The observed choice counts as one more draw. */
static double drawn_p(uint64_t hits)
{
    return (double)(hits + 1) / (PERMUTATION_DRAWS + 1);
}

/* Eight differences share a table of the sums of their signs, which a byte chooses from. */
enum { SIGNS = 8, SUMS = 1 << SIGNS, BYTES = 16 /* of random bits in a block */, DRAWS_AT_ONCE = 1024 };

static double *sign_tables(const double *difference, size_t n, size_t tables)
{
    double *sum = xcalloc(tables, SUMS * sizeof *sum);
    for (size_t i = 0; i < tables * SUMS; i++)
        for (size_t k = i / SUMS * SIGNS; k < n && k < (i / SUMS + 1) * SIGNS; k++)
            sum[i] += i % SUMS >> k % SIGNS & 1 ? difference[k] : -difference[k];
    return sum;
}

/* Whether no draw can be expected to reach the bound: the sum of n signed values is that far from 0 with a probability of at most
 * 2 exp(−bound² / (2 Σ d²)) (Hoeffding, JASA 1963), which all draws together have to keep below 10^-9. */
static bool is_unreachable(const double *difference, size_t n, double bound)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += difference[i] * difference[i];
    return bound * bound > 2 * squares * log(2 * 1e9 * PERMUTATION_DRAWS);
}

/* Adds the signs that a block of random bits has for each draw; a table at a time, so that it stays in the nearest cache. */
static void add_signs(const double *table, size_t tables, uint32_t (*words)[4], size_t draws, double *sum)
{
    for (size_t i = 0; i < tables; i++)
        for (size_t draw = 0; draw < draws; draw++)
            sum[draw] += table[i * SUMS + (words[draw][i / 4] >> i % 4 * SIGNS & (SUMS - 1))];
}

static double draw_flips(const double *difference, size_t n, double bound, uint64_t seed)
{
    struct rng rng = rng_make(seed, RNG_RESAMPLING, 0, 0);
    uint64_t hits = 0, tables = (n + SIGNS - 1) / SIGNS, blocks = (tables + BYTES - 1) / BYTES;
    OWNED double *table = sign_tables(difference, n, tables);
    double sum[DRAWS_AT_ONCE];
    uint32_t words[DRAWS_AT_ONCE][4];
    for (uint64_t first = 0, draws; first < PERMUTATION_DRAWS; first += draws) {
        draws = PERMUTATION_DRAWS - first < DRAWS_AT_ONCE ? PERMUTATION_DRAWS - first : DRAWS_AT_ONCE;
        memset(sum, 0, sizeof sum);
        for (uint64_t block = 0; block < blocks; block++) {
            uint64_t left = tables - block * BYTES;
            for (uint64_t draw = 0; draw < draws; draw++)
                rng_block(&rng, (first + draw) * blocks + block, words[draw]);
            add_signs(table + block * BYTES * SUMS, left < BYTES ? left : BYTES, words, draws, sum);
        }
        for (uint64_t draw = 0; draw < draws; draw++)
            hits += fabs(sum[draw]) >= bound;
    }
    return drawn_p(hits);
}

double permutation_sign_flips(const double *difference, size_t n, uint64_t seed)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += difference[i];
    double bound = fabs(sum) - (double)n * SLACK;
    if (n == 0 || isnan(bound))
        return (double)NAN;
    return bound <= 0                             ? 1 /* every flip reaches it */
           : n <= PERMUTATION_EXACT               ? count_flips(difference, n, bound)
           : is_unreachable(difference, n, bound) ? drawn_p(0)
                                                  : draw_flips(difference, n, bound, seed);
}

/* Values less the mean of their stratum, scaled so that the sum over label b is the difference of the means. */
struct labels {
    size_t n;
    double *share;
    size_t *left, *wanted; /* [n]: values of the stratum from this one on; at its first value, how many have label b */
    double bits, observed; /* log2 of the number of choices; the sum over b */
};

/* Reads the stratum that begins at first, and returns its end; 0 where it lacks a side. */
static size_t add_stratum(struct labels *l, const double *value, const double *stratum, const double *is_b,
                          size_t first)
{
    size_t end = first, b = 0;
    for (; end < l->n && stratum[end] == stratum[first]; end++)
        b += is_b[end] != 0;
    double count = (double)(end - first), mean = statistics_mean(value + first, end - first);
    if (b == 0 || b == end - first)
        return 0;
    for (size_t i = first; i < end; i++) {
        l->share[i] = (value[i] - mean) * (1 / (double)b + 1 / (count - (double)b));
        l->left[i] = end - i;
        l->observed += is_b[i] != 0 ? l->share[i] : 0;
    }
    l->wanted[first] = b;
    l->bits += statistics_log2_choices(count - (double)b, (double)b);
    return end;
}

/* Choices from value i on, with `wanted` labels b left in its stratum, whose |sum| reaches the bound. */
static uint64_t count_labels(const struct labels *l, size_t i, size_t wanted, double sum, double bound)
{
    if (i == l->n)
        return fabs(sum) >= bound;
    if (i == 0 || l->left[i - 1] == 1)
        wanted = l->wanted[i];
    uint64_t count = wanted > 0 ? count_labels(l, i + 1, wanted - 1, sum + l->share[i], bound) : 0;
    return count + (wanted < l->left[i] ? count_labels(l, i + 1, wanted, sum, bound) : 0);
}

static double draw_labels(const struct labels *l, double bound, uint64_t seed)
{
    struct rng rng = rng_make(seed, RNG_RESAMPLING, 0, 0);
    uint64_t hits = 0, blocks = (l->n + 3) / 4;
    for (uint64_t draw = 0; draw < PERMUTATION_DRAWS; draw++) {
        double sum = 0;
        uint64_t wanted = 0;
        uint32_t words[4] = {0};
        for (size_t i = 0; i < l->n; i++) {
            wanted = i == 0 || l->left[i - 1] == 1 ? l->wanted[i] : wanted;
            if (i % 4 == 0)
                rng_block(&rng, draw * blocks + i / 4, words);
            if ((uint64_t)words[i % 4] * l->left[i] >> 32 < wanted) { /* with probability wanted / left */
                sum += l->share[i];
                wanted--;
            }
        }
        hits += fabs(sum) >= bound;
    }
    return drawn_p(hits);
}

double permutation_labels(const double *value, const double *stratum, const double *is_b, size_t n, uint64_t seed)
{
    struct labels l = {.n = n,
                       .share = xcalloc(n + 1, sizeof *l.share),
                       .left = xcalloc(n + 1, sizeof *l.left),
                       .wanted = xcalloc(n + 1, sizeof *l.wanted)};
    size_t end = n > 0 ? add_stratum(&l, value, stratum, is_b, 0) : 0;
    while (end > 0 && end < n)
        end = add_stratum(&l, value, stratum, is_b, end);
    double bound = fabs(l.observed) - (double)n * SLACK, p = (double)NAN;
    if (end > 0 && bound <= 0)
        p = 1;
    else if (end > 0 && !isnan(bound))
        p = l.bits <= PERMUTATION_LABELS && n <= PERMUTATION_RECURSION
                ? (double)count_labels(&l, 0, 0, 0, bound) / round(exp2(l.bits))
                : draw_labels(&l, bound, seed);
    free(l.share);
    free(l.left);
    free(l.wanted);
    return p;
}

enum { SAMPLES = 4000, COARSE_FLIPS = 20, COARSE_LABELS = 13 /* bits of the choices of tests with few */ };

/* Whether the test of one normal sample, of all contexts, finds the effect. */
static bool finds(const struct permutation_plan *plan, size_t n, uint32_t sample, double level)
{
    double value[2 * COARSE_FLIPS], stratum[2 * COARSE_FLIPS], is_b[2 * COARSE_FLIPS];
    struct rng rng = rng_make(1, RNG_RESAMPLING, 1, sample);
    size_t sides = plan->unpaired ? 2 : 1, count = sides * n * plan->contexts;
    for (size_t i = 0; i < count; i++) {
        size_t context = i / (sides * n);
        stratum[i] = (double)context;
        is_b[i] = i % (sides * n) >= (sides - 1) * n;
        value[i] = (double)rng_normal(&rng, i) + is_b[i] * plan->effect * sqrt((double)sides / (double)plan->contexts);
    }
    double p =
        plan->unpaired ? permutation_labels(value, stratum, is_b, count, 0) : permutation_sign_flips(value, count, 0);
    return p <= level;
}

static bool is_enough(const struct permutation_plan *plan, size_t n, double level)
{
    size_t found = 0;
    double bits = (double)plan->contexts * (plan->unpaired ? statistics_log2_choices((double)n, (double)n) : (double)n);
    if (bits > (plan->unpaired ? COARSE_LABELS : COARSE_FLIPS))
        return true;
    for (uint32_t sample = 0; sample < SAMPLES; sample++)
        found += finds(plan, n, sample, level);
    return (double)found >= POWER * SAMPLES;
}

size_t permutation_seeds_needed(const struct permutation_plan *plan)
{
    double level = LEVEL / (double)plan->tests;
    size_t n = statistics_seeds_needed(plan->effect, plan->cells, level, POWER),
           least = statistics_least_seeds(level, plan->contexts, plan->unpaired);
    if (n == 0)
        return 0;
    for (n = n > least ? n : least; !is_enough(plan, n, level);)
        n++;
    return n;
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

/* Fills magnitudes with the differences that are not 0, sorted and ranked, and returns their number. */
static size_t rank_magnitudes(const double *difference, size_t n, struct magnitude *magnitudes, bool *ties)
{
    size_t count = 0;
    *ties = false;
    for (size_t i = 0; i < n; i++)
        if (fabs(difference[i]) > PERMUTATION_TIE)
            magnitudes[count++] = (struct magnitude){fabs(difference[i]), difference[i] > 0, 0};
    qsort(magnitudes, count, sizeof *magnitudes, compare_magnitudes);
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && magnitudes[end].size - magnitudes[end - 1].size <= PERMUTATION_TIE;)
            end++;
        *ties |= end - begin > 1;
        for (size_t i = begin; i < end; i++)
            magnitudes[i].rank = (uint32_t)(begin + end + 1); /* twice the mean of the ranks begin + 1 … end */
    }
    return count;
}

/* P(sum of ranks <= w) over all signs; every rank and w have the factor unit. The distribution grows by a rank at a
 * time: half of it stays, half moves up. */
static double lower_tail(const struct magnitude *magnitudes, size_t n, uint32_t unit, uint64_t w)
{
    size_t size = (size_t)(w / unit) + 1;
    OWNED double *share = xcalloc(size, sizeof *share);
    double tail = 0;
    share[0] = 1;
    for (size_t k = 0; k < n; k++) {
        size_t rank = magnitudes[k].rank / unit;
        for (size_t i = size; i-- > 0;)
            share[i] = (share[i] + (i >= rank ? share[i - rank] : 0)) / 2;
    }
    for (size_t i = 0; i < size; i++)
        tail += share[i];
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

double permutation_signed_ranks(const double *difference, size_t n)
{
    OWNED struct magnitude *magnitudes = xmalloc(n * sizeof *magnitudes);
    uint64_t above = 0, total = 0;
    bool ties;
    n = rank_magnitudes(difference, n, magnitudes, &ties);
    for (size_t i = 0; i < n; i++) {
        above += magnitudes[i].above ? magnitudes[i].rank : 0;
        total += magnitudes[i].rank;
    }
    uint64_t w = above < total - above ? above : total - above; /* the distribution is symmetric */
    return n == 0                   ? 1
           : n <= PERMUTATION_RANKS ? fmin(1, 2 * lower_tail(magnitudes, n, ties ? 1 : 2, w))
                                    : fmin(1, 2 * normal_tail(magnitudes, n, w));
}
