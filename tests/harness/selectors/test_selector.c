#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/selectors/selectors.h"
#include "tests/harness/small_run.h"

TEST(every_selector_has_a_formula)
{
    const struct selector_kind *kind;
    for (size_t i = 0; (kind = selector_kind_at(i)) != NULL; i++)
        if (kind->source == NULL || kind->formula == NULL || *kind->formula == 0 || strchr(kind->formula, '\n') != NULL)
            fail_msg("%s: expected a source, and a formula in one line", kind->name);
}

/* --- The decision --- */

/* Five images under three tasks; the third task's errors are also those of unrelated images. */
static const float errors_of[3][5] = {
    {0.5f, 0.1f, 0.4f, 0.2f, 0.9f}, {0.2f, 0.3f, 0.4f, 0.9f, 0.9f}, {0.1f, 0.2f, 0.1f, 0.1f, 0.0f}};
static const float unrelated[5] = {0.3f, 0.05f, 0.4f, 0.4f, 1};
static float thresholds[3] = {0.3f, 0.45f, 1.0f}, open_thresholds[3] = {1, 1, 1};

static struct selector deciding(size_t trained, size_t together)
{
    return (struct selector){.kind = &selector_clip,
                             .tasks = 3,
                             .trained = trained,
                             .thresholds = thresholds,
                             .decision = together > 0 ? DECIDE_PER_BATCH : DECIDE_PER_IMAGE,
                             .decision_batch = together};
}

/* Ties go to the lower task; above the winner's threshold: −1. */
TEST(the_smallest_error_decides)
{
    static const struct {
        size_t trained, together; /* 0: each image by itself */
        int16_t routers[5];
    } cases[] = {{3, 0, {2, 0, 2, 2, 2}},
                 {2, 0, {1, 0, -1, 0, -1}}, /* the third is not trained: it does not compete */
                 {1, 0, {-1, 0, -1, 0, -1}},
                 {0, 0, {-1, -1, -1, -1, -1}},
                 /* means of images 0–1: 0.3 and 0.25; of 2–3: 0.3 (not above 0.3) and 0.65; of 4 alone: 0.9 and 0.9 */
                 {2, 2, {1, 1, 0, 0, -1}},
                 {2, 128, {-1, -1, -1, -1, -1}}, /* 0.42 and 0.54 */
                 {2, 1, {1, 0, -1, 0, -1}}};
    const float *rows[] = {errors_of[0], errors_of[1], errors_of[2]};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct selector selector = deciding(cases[c].trained, cases[c].together);
        int16_t routers[5];
        memset(routers, 0x55, sizeof routers);
        selector_choose(&selector, rows, 5, routers);
        for (int i = 0; i < 5; i++)
            if (routers[i] != cases[c].routers[i])
                fail_msg("case %zu, image %d: expected %d, found %d", c, i, cases[c].routers[i], routers[i]);
    }
}

/* Of no task are images nearer to unrelated ones; the third is a tie. */
TEST(unrelated_images_mean_zero_shot)
{
    const float *rows[] = {errors_of[0], errors_of[1], NULL, unrelated};
    struct selector selector = deciding(2, 0);
    int16_t routers[5];
    selector.thresholds = open_thresholds;
    for (int competes = 0; competes < 2; competes++) {
        selector.unrelated = competes;
        selector_choose(&selector, rows, 5, routers);
        assert_memory_equal(routers, (competes ? (int16_t[]){1, -1, -1, 0, 0} : (int16_t[]){1, 0, 0, 0, 0}),
                            sizeof routers);
    }
}

/* The error behind each decision, whether or not it was within its threshold. */
TEST(least_errors_are_those_that_decided)
{
    const float *rows[] = {errors_of[0], errors_of[1], errors_of[2]};
    struct selector selector = deciding(2, 0);
    float least[5];
    selector_least_errors(&selector, rows, 5, least);
    assert_memory_equal(least, ((const float[]){0.2f, 0.1f, 0.4f, 0.2f, 0.9f}), sizeof least);
    selector = deciding(2, 2);
    selector_least_errors(&selector, rows, 5, least);
    assert_true(least[0] == 0.25f && least[1] == 0.25f && fabsf(least[3] - 0.3f) < 1e-6f && least[4] == 0.9f);
}

/* --- Training on frozen features --- */

static struct selector *train(struct small_run *run, size_t tasks)
{
    struct selector *selector = small_run_selector(run);
    for (size_t k = 0; k < tasks; k++) {
        assert_int_equal(selector->trained, k);
        must(selector_train(selector, &run->experiment->data.tasks[k], NULL, &error));
    }
    assert_int_equal(selector->trained, tasks);
    return selector;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

RUN_TEST(a_fixed_threshold_is_taken_as_it_is, "selector.threshold=0.0655", NULL)
{
    struct selector *selector = train(run, 2);
    assert_float_equal(selector->thresholds[0], 0.0655, 1e-9);
    assert_float_equal(selector->thresholds[1], 0.0655, 1e-9);
}

/* Rows around the task's own point, 64 wide: the first half of its values is high for task 0, the second for task 1,
 * every other for 2. */
static void draw_features(size_t task, size_t first, size_t n, float *features)
{
    struct rng rng = rng_make(9, RNG_TEST, (uint32_t)task, 0);
    for (size_t i = 0; i < n * 64; i++) {
        size_t place = i % 64;
        bool high = task == 0 ? place < 32 : task == 1 ? place >= 32 : place % 2 == 0;
        features[i] = (high ? 2.0f : -2.0f) + 0.2f * rng_normal(&rng, first * 64 + i);
    }
}

enum { FIT = 200, HELD_OUT = 100, NEW = 100 };

RUN_TEST(separable_features_find_their_router, "selector.iterations=300", "selector.code=16", NULL)
{
    struct selector *selector = small_run_selector(run);
    static float features[(FIT + HELD_OUT) * 64], errors[3][NEW];
    const float *rows[3] = {errors[0], errors[1], errors[2]};
    int16_t routers[NEW];
    assert_int_equal(run->experiment->model.clip->dimensions.image_width, 64);
    for (size_t k = 0; k < 3; k++) {
        draw_features(k, 0, FIT + HELD_OUT, features);
        must(selector_fit(selector, &run->experiment->data.tasks[k],
                          &(struct selector_images){.n = FIT + HELD_OUT, .means = features}, FIT, &error));
    }
    for (size_t task = 0; task < 3; task++) {
        size_t right = 0;
        draw_features(task, 1000, NEW, features);
        for (size_t k = 0; k < 3; k++)
            must(selector_errors(selector, k, &(struct selector_images){.n = NEW, .means = features}, errors[k],
                                 &error));
        selector_choose(selector, rows, NEW, routers);
        for (size_t i = 0; i < NEW; i++) { /* its own or, for the hundredth above the threshold, none */
            assert_true(routers[i] == (int16_t)task || routers[i] == -1);
            right += routers[i] == (int16_t)task;
        }
        assert_true(right >= 90);
    }
}

/* Of 101 held-out losses the 0.99 quantile is the second largest; between two of them it lies on the line. */
RUN_TEST(threshold_is_the_quantile_of_the_held_out_rows, NULL)
{
    static float features[(FIT + 101) * 64], errors[101];
    static const struct {
        const char *override;
        double position;
    } shares[] = {{"selector.quantile=0.99", 99},
                  {"selector.quantile=0.125", 12.5},
                  {"selector.quantile=0", 0},
                  {"selector.quantile=1", 100}};
    draw_features(1, 0, FIT + 101, features);
    for (size_t q = 0; q < sizeof shares / sizeof *shares; q++) {
        small_run_reopen(run, 3, WORDS(shares[q].override));
        struct selector *selector = small_run_selector(run);
        must(selector_fit(selector, &run->experiment->data.tasks[1],
                          &(struct selector_images){.n = FIT + 101, .means = features}, FIT, &error));
        must(selector_errors(selector, 1, &(struct selector_images){.n = 101, .means = features + FIT * 64}, errors,
                             &error));
        qsort(errors, 101, sizeof *errors, compare);
        size_t low = (size_t)shares[q].position;
        double expected = shares[q].position == (double)low ? (double)errors[low]
                                                            : ((double)errors[low] + (double)errors[low + 1]) / 2;
        assert_true(fabs((double)selector->thresholds[1] - expected) < 1e-6 * expected);
    }
}

/* A task alone or after others, in any order of calls: the same autoencoder, of the same seed. */
RUN_TEST(depends_on_seed_and_task_alone, NULL)
{
    struct selector *all = train(run, 3), *one = small_run_selector(run);
    must(selector_train(one, &run->experiment->data.tasks[2], NULL, &error));
    size_t n = all->coders[2]->parameters->values_count;
    float *a = small_run_group(all->coders[2]->parameters), *b = small_run_group(one->coders[2]->parameters),
          *other = small_run_group(all->coders[1]->parameters);
    assert_memory_equal(a, b, n * sizeof *a);
    assert_memory_not_equal(a, other, n * sizeof *a);
    assert_true(all->thresholds[2] == one->thresholds[2]);
}

RUN_TEST(stopping_leaves_it_untrained, NULL)
{
    struct selector *selector = small_run_selector(run);
    struct stop stop = {.signal = 2};
    assert_int_equal(selector_train(selector, &run->experiment->data.tasks[0], &stop, &error), ERROR_STOPPED);
    assert_int_equal(selector->trained, 0);
}
