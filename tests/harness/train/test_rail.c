/* Classifiers behind a frozen tower: RAIL against a direct solve of its equations, scores in both label spaces, limits and
 * state of all of them. replay_classes.c compares ran_pac, simple_cil and lada with PyTorch. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "harness/evaluate/evaluator.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "harness/train/services/regression.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/plain.h"

enum { WIDTH = 7, HIDDEN = 40, ROWS = 60, CLASSES = 5, TEST = 9, MANY = 90 };

static const double ridge = 0.1, gamma_of_kernel = 0.7;

struct world {
    float x[ROWS * WIDTH], test[TEST * WIDTH], random[HIDDEN * WIDTH];
    int32_t labels[ROWS];
};

static void draw(float *values, size_t n, uint32_t which)
{
    struct rng rng = rng_make(5, RNG_TEST, 1, which);
    for (size_t i = 0; i < n; i++)
        values[i] = rng_normal(&rng, i);
}

/* The first half of the rows has the first three classes. */
static void make_world(struct world *w)
{
    draw(w->x, ROWS * WIDTH, 0);
    draw(w->test, TEST * WIDTH, 1);
    draw(w->random, HIDDEN * WIDTH, 2);
    for (int32_t i = 0; i < ROWS; i++)
        w->labels[i] = i < ROWS / 2 ? i % 3 : 3 + i % 2;
}

/* Direction h of the world times a unit vector, where it is positive; or exp(−γ ‖x − y‖²) of x and row h, as unit vectors. */
static double phi(const struct world *w, enum regression_form form, const float *x, size_t h)
{
    double unit[WIDTH] = {0}, gap[WIDTH] = {0}, sum = 0;
    plain_add_unit(unit, x, WIDTH, 1);
    if (form == REGRESSION_PRIMAL) {
        for (size_t k = 0; k < WIDTH; k++)
            sum += unit[k] * (double)w->random[h * WIDTH + k];
        return fmax(sum, 0);
    }
    plain_add_unit(gap, w->x + h * WIDTH, WIDTH, -1);
    for (size_t k = 0; k < WIDTH; k++)
        sum += (unit[k] + gap[k]) * (unit[k] + gap[k]);
    return exp(-gamma_of_kernel * sum);
}

/* scores [TEST, classes] from the first n rows, in one solve of (ΦᵀΦ + ridge · I) W = ΦᵀY, or of (Φ + ridge · I) W = Y */
static void direct_scores(const struct world *w, enum regression_form form, size_t n, size_t classes, double *scores)
{
    static double rows[ROWS][ROWS], a[ROWS * ROWS], b[ROWS * CLASSES];
    bool primal = form == REGRESSION_PRIMAL;
    size_t size = primal ? HIDDEN : n;
    memset(b, 0, sizeof b);
    for (size_t i = 0; i < n * size; i++)
        rows[i / size][i % size] = phi(w, form, w->x + i / size * WIDTH, i % size);
    for (size_t i = 0; i < size * size; i++) {
        a[i] = (i % (size + 1) == 0 ? ridge : 0) + (primal ? 0 : rows[i / size][i % size]);
        for (size_t r = 0; primal && r < n; r++)
            a[i] += rows[r][i / size] * rows[r][i % size];
    }
    for (size_t i = 0; i < size; i++)
        for (size_t r = 0; r < n; r++)
            b[i * classes + (size_t)w->labels[r]] += primal ? rows[r][i] : r == i;
    plain_solve(a, b, size, classes);
    memset(scores, 0, TEST * classes * sizeof *scores);
    for (size_t i = 0; i < TEST * classes; i++)
        for (size_t m = 0; m < size; m++)
            scores[i] += phi(w, form, w->test + i / classes * WIDTH, m) * b[m * classes + i % classes];
}

static void open_regression(struct regression *r, const struct world *w, enum regression_form form,
                            struct threads *pool)
{
    *r = (struct regression){.form = form, .width = WIDTH, .ridge = ridge, .gamma = gamma_of_kernel, .pool = pool};
    if (form == REGRESSION_DUAL)
        return;
    regression_draw(r, HIDDEN, 0); /* and the world's own directions in place of these */
    for (size_t i = 0; i < HIDDEN * WIDTH; i++)
        r->bases[i] = (double)w->random[i];
}

/* Learned in two tasks, with three classes and then five. */
TEST(tasks_add_up_to_one_regression)
{
    struct world w;
    struct threads *pool;
    make_world(&w);
    must(threads_create(&pool, 2, &error));
    for (enum regression_form form = REGRESSION_PRIMAL; form <= REGRESSION_DUAL; form++) {
        struct regression r;
        double scores[TEST * CLASSES], expected[TEST * CLASSES];
        open_regression(&r, &w, form, pool);
        for (size_t half = 0; half < 2; half++) {
            size_t first = half * ROWS / 2, classes = half == 0 ? 3 : CLASSES;
            regression_add(&r, w.x + first * WIDTH, w.labels + first, ROWS / 2, classes);
            must(regression_solve(&r, &error));
            regression_scores(&r, w.test, TEST, scores);
            direct_scores(&w, form, first + ROWS / 2, classes, expected);
            for (size_t i = 0; i < TEST * classes; i++)
                if (!(fabs(scores[i] - expected[i]) < 1e-9))
                    fail_msg("form %d, task %zu, score %zu: %g, expected %g", form, half, i, scores[i], expected[i]);
        }
        regression_free(&r);
    }
    threads_destroy(pool);
}

/* The ridge of 10⁻⁸ … 10⁸ with the least squared error on the last fifth of the rows, each solved from scratch. */
static double plain_ridge(const struct regression *r, const float *x, const int32_t *labels, size_t n, size_t first,
                          size_t classes)
{
    struct regression p = *r;
    double least = INFINITY, best = 1e-8, scores[MANY * CLASSES];
    size_t used = n * 4 / 5;
    int32_t own[MANY];
    p.gram = NULL;
    p.products = p.coefficients = NULL;
    p.classes = 0;
    for (size_t i = 0; i < n; i++)
        own[i] = labels[i] - (int32_t)first;
    regression_add(&p, x, own, used, classes);
    for (int e = -8; e <= 8; e++) {
        double loss = 0;
        p.ridge = pow(10, e);
        if (regression_solve(&p, &error) != OK)
            continue;
        regression_scores(&p, x + used * WIDTH, n - used, scores);
        for (size_t i = 0; i < (n - used) * classes; i++)
            loss += pow(scores[i] - ((size_t)own[used + i / classes] == i % classes), 2);
        best = loss < least ? p.ridge : best;
        least = fmin(loss, least);
    }
    p.bases = NULL;
    regression_free(&p);
    return best;
}

/* Few rows beside the random features and many, noisy classes and clear ones: tasks of three and two classes. */
TEST(the_ridge_is_that_of_solves_from_scratch)
{
    static const size_t rows[][2] = {{20, 25}, {MANY, 20}, {MANY, MANY}, {26, 1}};
    struct threads *pool;
    bool seen[17] = {false};
    size_t different = 0;
    must(threads_create(&pool, 2, &error));
    for (size_t k = 0; k < 5 * sizeof rows / sizeof *rows; k++) {
        struct regression r = {.form = REGRESSION_PRIMAL, .width = WIDTH, .validated = true, .pool = pool},
                          whole = {.form = REGRESSION_PRIMAL, .width = WIDTH, .validated = true, .pool = pool};
        float x[MANY * WIDTH], centres[CLASSES * WIDTH];
        int32_t labels[MANY];
        regression_draw(&r, HIDDEN, k);
        regression_draw(&whole, HIDDEN, k);
        draw(centres, CLASSES * WIDTH, 20);
        for (size_t task = 0; task < 2; task++) {
            size_t n = rows[k / 5][task], first = 3 * task, classes = 3 - task;
            draw(x, n * WIDTH, (uint32_t)(30 + 2 * k + task));
            for (size_t i = 0; i < n; i++) {
                labels[i] = (int32_t)(first + i % classes);
                for (size_t c = 0; c < WIDTH; c++)
                    x[i * WIDTH + c] += (float)(k % 5) * centres[(size_t)labels[i] * WIDTH + c];
            }
            double expected = plain_ridge(&r, x, labels, n, first, classes);
            must(regression_learn_validated(&r, x, labels, n, first, first + classes, &error));
            if (n > 1)
                assert_true(fabs(r.ridge / expected - 1) < 1e-9);
            different += !seen[(size_t)lround(log10(r.ridge)) + 8];
            seen[(size_t)lround(log10(r.ridge)) + 8] = true;
            regression_add(&whole, x, labels, n, first + classes);
            whole.ridge = r.ridge;
            must(regression_solve(&whole, &error));
            for (size_t i = 0; i < whole.classes * HIDDEN; i++)
                assert_true(fabs(r.coefficients[i] - whole.coefficients[i]) < 1e-6 * (1 + fabs(whole.coefficients[i])));
        }
        regression_free(&r);
        regression_free(&whole);
    }
    assert_true(different > 3);
    threads_destroy(pool);
}

TEST(a_stop_ends_what_a_regression_computes)
{
    struct world w;
    struct threads *pool;
    struct stop stop = {0};
    make_world(&w);
    must(threads_create(&pool, 2, &error));
    threads_obey(pool, &stop);
    for (enum regression_form form = REGRESSION_PRIMAL; form <= REGRESSION_DUAL; form++) {
        struct regression r;
        open_regression(&r, &w, form, pool);
        regression_add(&r, w.x, w.labels, ROWS, CLASSES);
        stop.signal = 15;
        assert_int_equal(regression_solve(&r, &error), ERROR_STOPPED);
        if (form == REGRESSION_PRIMAL)
            assert_int_equal(regression_learn_validated(&r, w.x, w.labels, ROWS / 2, 0, CLASSES, &error),
                             ERROR_STOPPED);
        stop.signal = 0;
        must(regression_solve(&r, &error));
        regression_free(&r);
    }
    threads_destroy(pool);
}

/* Scores of columns 1 … 4 of the classes, of which 1 and 2 are learned, mixed with those of the regression. Images whose best class
 * is not learned keep p. Where others' scores are the lowest, learned classes compete alone. */
TEST(learned_classes_alone_are_mixed)
{
    static const double cases[][2] = {{0.8, 0}, {1, -(double)FLT_MAX}}; /* fusion, others */
    struct world w;
    struct threads *pool;
    double own[TEST * 3];
    make_world(&w);
    must(threads_create(&pool, 1, &error));
    direct_scores(&w, REGRESSION_PRIMAL, ROWS / 2, 3, own);
    for (size_t k = 0; k < 2; k++) {
        struct regression r;
        float logits[TEST * 4], scores[TEST * 4];
        bool adapted[TEST];
        size_t count = 0;
        open_regression(&r, &w, REGRESSION_PRIMAL, pool);
        r.fusion = cases[k][0];
        r.others = cases[k][1];
        regression_add(&r, w.x, w.labels, ROWS / 2, 3);
        must(regression_solve(&r, &error));
        draw(logits, TEST * 4, 7);
        memcpy(scores, logits, sizeof scores);
        regression_fuse(&r, 1, w.test, TEST, 4, scores, adapted);
        regression_free(&r);
        for (size_t i = 0; i < TEST; i++) {
            double sum = 0;
            for (size_t c = 0; c < 4; c++)
                sum += exp((double)logits[i * 4 + c]);
            assert_int_equal(adapted[i], plain_best(logits + i * 4, 4) < 2);
            count += adapted[i];
            for (size_t c = 0; c < 4; c++) {
                double p = exp((double)logits[i * 4 + c]) / sum,
                       mixed = (1 - r.fusion) * p + r.fusion * (c < 2 ? own[i * 3 + 1 + c] : r.others);
                assert_true(fabs((double)scores[i * 4 + c] - (adapted[i] ? mixed : p)) < 1e-6);
            }
        }
        assert_true(count > 0 && count < TEST);
    }
    threads_destroy(pool);
}

/* An image of a task that was not learned keeps its zero-shot answer, one of a task that was is compared with the task's own columns,
 * whose colours are told apart. */
RUN_TEST(others_keep_their_answers, NULL)
{
    static const char *const methods[][3] = {{"method.name=ran_pac", "method.hidden=300"},
                                             {"method.name=simple_cil"},
                                             {"method.name=lada", "method.rate=0.05"},
                                             {"method.name=rapf", "method.rate=0.003", "method.epochs=600"},
                                             {"method.name=engine"},
                                             {"method.name=rail_primal", "method.hidden=300", "method.fusion=1"}};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        small_run_reopen(run, 1, WORDS(methods[m][0], methods[m][1], methods[m][2]));
        struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
        learn(run, 0);
        learn(run, 1);
        for (size_t j = 0; j < SMALL_RUN_TASKS; j++) {
            struct test_set *set = &evaluator->sets[j];
            must(evaluator_task(evaluator, 1, j, NULL, &error));
            for (size_t i = 0; j == 2 && i < set->n; i++)
                assert_int_equal(set->predicted[i], set->zero_shot[i]);
            if (j < 2 && set->correct != set->n)
                fail_msg("%s, task %zu: %zu of %zu", methods[m][0], j, set->correct, set->n);
        }
    }
}

RUN_TEST(what_does_not_fit_is_refused_at_once, "method.name=rail_primal", "method.hidden=50", NULL)
{
    const struct regression primal = {.form = REGRESSION_PRIMAL, .width = 512, .basis = 15000},
                            kernel = {.form = REGRESSION_DUAL, .width = 512};
    struct regression_cost published = regression_cost(&primal, 17600, 1100, 10),
                           dual = regression_cost(&kernel, 17600, 1100, 10),
                           full = regression_cost(&kernel, 400000, 1100, 11);
    const double gigabyte = 1 << 30;
    assert_true(published.most < 2.4 * gigabyte && published.kept < 1.1 * gigabyte);
    assert_true(dual.most < 1.6 * gigabyte && dual.kept < 0.1 * gigabyte);
    assert_true(full.most > 590 * gigabyte);
    const struct estimate estimate = workload_estimate(run->experiment);
    assert_true(estimate.resume > 2 * 9 * 50 * sizeof(double) && estimate.training > 0);
    must_refuse(small_run_try(run, 1, WORDS("method.name=rail_primal", "method.hidden=1000000")), ERROR_MEMORY,
                "method.hidden", "1000000", "GiB", "lower it");
}
