#include "tests/results/check.h"

#include <math.h>
#include <stdlib.h>

#include "core/rng.h"
#include "results/statistics/bootstrap.h"

#define IMAGES 2000
#define SEEDS 12

/* Seed s favours b on about (10 + away·(s − 5.5)) percent of the images. */
static int8_t *make_difference(double away)
{
    int8_t *difference = calloc(SEEDS * IMAGES, 1);
    for (uint32_t s = 0; s < SEEDS; s++)
        for (uint32_t i = 0; i < IMAGES; i++) {
            struct rng rng = rng_make(3, RNG_TEST, s, i);
            difference[s * IMAGES + i] = (double)rng_uniform(&rng, 0) < 0.1 + away / 100 * (s - 5.5);
        }
    return difference;
}

static struct bootstrap_interval ask(const int8_t *difference, size_t seeds, size_t images, uint64_t seed)
{
    struct bootstrap_task task = {.images = images, .difference = difference};
    struct bootstrap_plan plan = {.seed = seed, .draws = 4000};
    struct bootstrap_interval interval[2];
    bootstrap_seeds_and_images(&task, 1, seeds, &plan, interval);
    assert_true(interval[0].low == interval[1].low && interval[0].high == interval[1].high);
    return interval[0];
}

/* One seed: only images vary, and the interval is that of a proportion, p ± 1.96 √(p(1 − p)/n). */
static void one_seed_varies_by_its_images(void **state)
{
    (void)state;
    int8_t *difference = make_difference(0);
    struct bootstrap_interval of = ask(difference, 1, IMAGES, 1);
    double p = of.estimate / 100, half = 196 * sqrt(p * (1 - p) / IMAGES);
    assert_true(fabs(of.estimate - 10) < 2);
    assert_true(fabs(of.high - of.estimate - half) < 0.1 * half);
    assert_true(fabs(of.estimate - of.low - half) < 0.1 * half);
    free(difference);
}

/* Seeds that disagree widen it by what the mean over seeds varies, sd √(1 − 1/S)/√S. */
static void seeds_that_disagree_widen_it(void **state)
{
    (void)state;
    int8_t *alike = make_difference(0), *apart = make_difference(1.5);
    struct bootstrap_interval narrow = ask(alike, SEEDS, IMAGES, 1), wide = ask(apart, SEEDS, IMAGES, 1);
    double spread = 1.5 * sqrt((SEEDS * SEEDS - 1) / 12.0), half = 1.96 * spread / sqrt(SEEDS);
    assert_true(narrow.high - narrow.low < 2 * 0.7);
    assert_true(fabs((wide.high - wide.low) / 2 - half) < 0.15 * half);
    free(alike);
    free(apart);
}

static void the_same_seed_draws_the_same(void **state)
{
    (void)state;
    int8_t *difference = make_difference(1);
    struct bootstrap_interval first = ask(difference, SEEDS, IMAGES, 1), again = ask(difference, SEEDS, IMAGES, 1),
                              other = ask(difference, SEEDS, IMAGES, 2);
    assert_memory_equal(&first, &again, sizeof first);
    assert_true(first.low != other.low && first.estimate == other.estimate);
    free(difference);
}

static void tasks_weigh_the_same_in_their_mean(void **state)
{
    (void)state;
    static const int8_t always[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, never[2000] = {0}, against[3] = {-1, -1, -1};
    struct bootstrap_task tasks[] = {{10, always}, {2000, never}, {3, against}};
    struct bootstrap_interval interval[4];
    bootstrap_seeds_and_images(tasks, 3, 1, &(struct bootstrap_plan){.seed = 1}, interval);
    assert_true(interval[0].low == 100 && interval[0].high == 100 && interval[0].estimate == 100);
    assert_true(interval[1].low == 0 && interval[1].high == 0);
    assert_true(interval[2].estimate == -100 && interval[2].high == -100);
    assert_true(fabs(interval[3].estimate) < 1e-12 && fabs(interval[3].low) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_seed_varies_by_its_images),
        cmocka_unit_test(seeds_that_disagree_widen_it),
        cmocka_unit_test(the_same_seed_draws_the_same),
        cmocka_unit_test(tasks_weigh_the_same_in_their_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
