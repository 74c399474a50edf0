#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/selectors/selector.h"
#include "tests/harness/small_run.h"

TEST(every_selector_has_a_formula)
{
    const struct selector_kind *kind;
    for (size_t i = 0; (kind = selector_kind_at(i)) != NULL; i++)
        if (kind->source == NULL || kind->formula == NULL || *kind->formula == 0 || strchr(kind->formula, '\n') != NULL)
            fail_msg("%s: expected a source, and a formula in one line", kind->name);
}

/* --- The decision --- */

/* Five images under three tasks, and the errors of images of no task. */
static const float errors_of[4][5] = {{0.5f, 0.1f, 0.4f, 0.2f, 0.9f},
                                      {0.2f, 0.3f, 0.4f, 0.9f, 0.9f},
                                      {0.1f, 0.2f, 0.1f, 0.1f, 0.0f},
                                      {0.3f, 0.05f, 0.4f, 0.4f, 1}};

/* Ties go to the lower task, also before images of no task; above the winner's threshold: −1. The least error of a task is that behind the
 * decision, whether or not it was within its threshold. */
TEST(the_smallest_error_decides)
{
    static const struct {
        size_t trained, together; /* 0: each image by itself */
        bool unrelated, open;     /* images of no task compete; no threshold is exceeded */
        int16_t routers[5];
        float least[5];
    } cases[] = {{3, 0, false, false, {2, 0, 2, 2, 2}, {0.1f, 0.1f, 0.1f, 0.1f, 0}},
                 /* the third is not trained: it does not compete */
                 {2, 0, false, false, {1, 0, -1, 0, -1}, {0.2f, 0.1f, 0.4f, 0.2f, 0.9f}},
                 {2, 1, false, false, {1, 0, -1, 0, -1}, {0.2f, 0.1f, 0.4f, 0.2f, 0.9f}},
                 {1, 0, false, false, {-1, 0, -1, 0, -1}, {0.5f, 0.1f, 0.4f, 0.2f, 0.9f}},
                 {0, 0, false, false, {-1, -1, -1, -1, -1}, {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}},
                 /* means of images 0–1: 0.3 and 0.25; of 2–3: 0.3 (not above 0.3) and 0.65; of 4 alone: 0.9 and 0.9 */
                 {2, 2, false, false, {1, 1, 0, 0, -1}, {0.25f, 0.25f, 0.3f, 0.3f, 0.9f}},
                 {2, 128, false, false, {-1, -1, -1, -1, -1}, {0.42f, 0.42f, 0.42f, 0.42f, 0.42f}}, /* and 0.54 */
                 {2, 0, false, true, {1, 0, 0, 0, 0}, {0.2f, 0.1f, 0.4f, 0.2f, 0.9f}},
                 {2, 0, true, true, {1, -1, -1, 0, 0}, {0.2f, 0.1f, 0.4f, 0.2f, 0.9f}}};
    const float *rows[] = {errors_of[0], errors_of[1], errors_of[2], errors_of[3]};
    static float thresholds[2][3] = {{0.3f, 0.45f, 1}, {1, 1, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct selector selector = {.kind = &selector_clip,
                                          .tasks = 3,
                                          .trained = cases[c].trained,
                                          .thresholds = thresholds[cases[c].open],
                                          .unrelated = cases[c].unrelated,
                                          .decision = cases[c].together > 0 ? DECIDE_PER_BATCH : DECIDE_PER_IMAGE,
                                          .decision_batch = cases[c].together};
        int16_t routers[5];
        float least[5];
        memset(routers, 0x55, sizeof routers);
        selector_choose(&selector, rows, 5, routers);
        selector_least_errors(&selector, rows, 5, least);
        for (int i = 0; i < 5; i++)
            if (routers[i] != cases[c].routers[i] ||
                !(least[i] == cases[c].least[i] || fabsf(least[i] - cases[c].least[i]) < 1e-6f))
                fail_msg("case %zu, image %d: expected %d, %g, found %d, %g", c, i, cases[c].routers[i],
                         (double)cases[c].least[i], routers[i], (double)least[i]);
    }
}

/* --- Training on frozen features --- */

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
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

/* Of 101 held-out losses the 0.99 quantile is the second largest; between two of them it lies on the line. A fixed threshold is
 * taken as it is. */
RUN_TEST(threshold_is_the_quantile_of_the_held_out_rows, NULL)
{
    static float features[(FIT + 101) * 64], errors[101];
    static const struct {
        const char *override;
        double position; /* below 0: fixed */
    } shares[] = {{"selector.quantile=0.99", 99},
                  {"selector.quantile=0.125", 12.5},
                  {"selector.quantile=0", 0},
                  {"selector.quantile=1", 100},
                  {"selector.threshold=0.0655", -1}};
    draw_features(1, 0, FIT + 101, features);
    for (size_t q = 0; q < sizeof shares / sizeof *shares; q++) {
        small_run_reopen(run, 3, WORDS(shares[q].override));
        struct selector *selector = small_run_selector(run);
        must(selector_fit(selector, &run->experiment->data.tasks[1],
                          &(struct selector_images){.n = FIT + 101, .means = features}, FIT, &error));
        must(selector_errors(selector, 1, &(struct selector_images){.n = 101, .means = features + FIT * 64}, errors,
                             &error));
        qsort(errors, 101, sizeof *errors, compare);
        double at = shares[q].position, expected = 0.0655;
        if (at >= 0)
            expected = ((double)errors[(size_t)floor(at)] + (double)errors[(size_t)ceil(at)]) / 2;
        assert_true(fabs((double)selector->thresholds[1] - expected) < 1e-6 * expected);
    }
}

/* A task alone or after others, in any order of calls: the same autoencoder, of the same seed. */
RUN_TEST(depends_on_seed_and_task_alone, NULL)
{
    struct selector *all = small_run_selector(run), *one = small_run_selector(run);
    for (size_t k = 0; k < 3; k++) {
        must(selector_train(all, &run->experiment->data.tasks[k], NULL, &error));
        assert_int_equal(all->trained, k + 1);
    }
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
