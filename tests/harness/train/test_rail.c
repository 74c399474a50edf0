/* Classifiers behind a frozen tower: RAIL against a direct solve of its equations, scores in both label spaces, limits and
 * state of all of them. replay_classes.c compares ran_pac, simple_cil and lada with PyTorch. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "harness/evaluate/evaluator.h"
#include "harness/methods/methods.h"
#include "harness/run/run.h"
#include "harness/run/workload.h"
#include "harness/train/services/regression.h"
#include "harness/train/trainer.h"
#include "tests/harness/small_run.h"

enum { WIDTH = 7, HIDDEN = 40, ROWS = 60, CLASSES = 5, TEST = 9 };

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

static double cosine(const float *a, const float *b)
{
    double dot = 0, aa = 0, bb = 0;
    for (size_t k = 0; k < WIDTH; k++) {
        dot += (double)a[k] * (double)b[k];
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
    }
    return dot / sqrt(aa * bb);
}

static double length(const float *a)
{
    double aa = 0;
    for (size_t k = 0; k < WIDTH; k++)
        aa += (double)a[k] * (double)a[k];
    return sqrt(aa);
}

/* x = A⁻¹ b of n equations by Gauss and Jordan; the matrices here need no pivots. */
static void eliminate(double *a, double *b, size_t n, size_t columns)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++) {
            double factor = i != k ? a[i * n + k] / a[k * n + k] : 0;
            for (size_t j = k; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
            for (size_t c = 0; c < columns; c++)
                b[i * columns + c] -= factor * b[k * columns + c];
        }
    for (size_t k = 0; k < n; k++)
        for (size_t c = 0; c < columns; c++)
            b[k * columns + c] /= a[k * n + k];
}

static double feature(const struct world *w, const float *x, size_t h)
{
    double sum = cosine(x, w->random + h * WIDTH) * length(w->random + h * WIDTH);
    return sum > 0 ? sum : 0;
}

/* exp(−γ ‖x − y‖²) of unit vectors, their difference taken as it stands. */
static double kernel(const float *x, const float *y)
{
    double square = 0;
    for (size_t k = 0; k < WIDTH; k++) {
        double difference = (double)x[k] / length(x) - (double)y[k] / length(y);
        square += difference * difference;
    }
    return exp(-gamma_of_kernel * square);
}

static double phi(const struct world *w, enum regression_form form, const float *x, size_t m)
{
    return form == REGRESSION_PRIMAL ? feature(w, x, m) : kernel(x, w->x + m * WIDTH);
}

/* scores [TEST, classes] from the first n rows, in one solve */
static void direct_scores(const struct world *w, enum regression_form form, size_t n, size_t classes, double *scores)
{
    static double a[ROWS * ROWS], b[ROWS * CLASSES];
    bool primal = form == REGRESSION_PRIMAL;
    size_t size = primal ? HIDDEN : n;
    for (size_t i = 0; i < size; i++) {
        for (size_t j = 0; j < size; j++) {
            a[i * size + j] = i == j ? ridge : 0;
            for (size_t r = 0; r < (primal ? n : 1); r++)
                a[i * size + j] += primal ? feature(w, w->x + r * WIDTH, i) * feature(w, w->x + r * WIDTH, j)
                                          : kernel(w->x + i * WIDTH, w->x + j * WIDTH);
        }
        for (size_t c = 0; c < classes; c++) {
            b[i * classes + c] = 0;
            for (size_t r = 0; r < n; r++)
                if ((size_t)w->labels[r] == c)
                    b[i * classes + c] += primal ? feature(w, w->x + r * WIDTH, i) : r == i;
        }
    }
    eliminate(a, b, size, classes);
    for (size_t t = 0; t < TEST; t++)
        for (size_t c = 0; c < classes; c++) {
            scores[t * classes + c] = 0;
            for (size_t m = 0; m < size; m++)
                scores[t * classes + c] += phi(w, form, w->test + t * WIDTH, m) * b[m * classes + c];
        }
}

static void open_regression(struct regression *r, const struct world *w, enum regression_form form,
                            struct threads *pool)
{
    *r = (struct regression){.form = form, .width = WIDTH, .ridge = ridge, .gamma = gamma_of_kernel, .pool = pool};
    if (form == REGRESSION_DUAL)
        return;
    must(regression_draw(r, HIDDEN, 0, &error)); /* and the world's own directions in place of these */
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
            must(regression_add(&r, w.x + first * WIDTH, w.labels + first, ROWS / 2, classes, &error));
            must(regression_solve(&r, &error));
            must(regression_scores(&r, w.test, TEST, scores, &error));
            direct_scores(&w, form, first + ROWS / 2, classes, expected);
            for (size_t i = 0; i < TEST * classes; i++)
                if (!(fabs(scores[i] - expected[i]) < 1e-9))
                    fail_msg("form %d, task %zu, score %zu: %g, expected %g", form, half, i, scores[i], expected[i]);
        }
        regression_free(&r);
    }
    threads_destroy(pool);
}

/* Scores of columns 1 … 4 of the classes, of which the first three are learned, mixed with those of the regression. */
struct mixed {
    double own[TEST * 3];
    float logits[TEST * 4], scores[TEST * 4];
    bool adapted[TEST];
};

static void mix(struct mixed *m, double fusion, double others)
{
    struct world w;
    struct threads *pool;
    struct regression r;
    make_world(&w);
    must(threads_create(&pool, 1, &error));
    open_regression(&r, &w, REGRESSION_PRIMAL, pool);
    r.fusion = fusion;
    r.others = others;
    must(regression_add(&r, w.x, w.labels, ROWS / 2, 3, &error));
    must(regression_solve(&r, &error));
    direct_scores(&w, REGRESSION_PRIMAL, ROWS / 2, 3, m->own);
    draw(m->logits, TEST * 4, 7);
    memcpy(m->scores, m->logits, sizeof m->scores);
    must(regression_fuse(&r, 1, w.test, TEST, 4, m->scores, m->adapted, &error));
    regression_free(&r);
    threads_destroy(pool);
}

static size_t best_of_four(const float *row)
{
    size_t best = 0;
    for (size_t c = 1; c < 4; c++)
        best = row[c] > row[best] ? c : best;
    return best;
}

/* 1 and 2 are learned. Images whose best class is not keep p. */
TEST(learned_classes_alone_are_mixed)
{
    struct mixed m;
    size_t count = 0;
    mix(&m, 0.8, 0);
    for (size_t i = 0; i < TEST; i++) {
        double sum = 0;
        for (size_t c = 0; c < 4; c++)
            sum += exp((double)m.logits[i * 4 + c]);
        assert_int_equal(m.adapted[i], best_of_four(m.logits + i * 4) < 2);
        count += m.adapted[i];
        for (size_t c = 0; c < 4; c++) {
            double p = exp((double)m.logits[i * 4 + c]) / sum,
                   expected = m.adapted[i] ? 0.2 * p + (c < 2 ? 0.8 * m.own[i * 3 + 1 + c] : 0) : p;
            assert_true(fabs((double)m.scores[i * 4 + c] - expected) < 1e-6);
        }
    }
    assert_true(count > 0 && count < TEST);
}

/* Where others' scores are the lowest, learned classes compete alone. */
TEST(classes_not_learned_lose)
{
    struct mixed m;
    mix(&m, 1, -(double)FLT_MAX);
    for (size_t i = 0; i < TEST; i++) {
        assert_true(m.adapted[i] || best_of_four(m.scores + i * 4) == best_of_four(m.logits + i * 4));
        for (size_t c = 0; m.adapted[i] && c < 4; c++)
            assert_true(c < 2 ? fabs((double)m.scores[i * 4 + c] - m.own[i * 3 + 1 + c]) < 1e-6
                              : m.scores[i * 4 + c] == -FLT_MAX);
    }
}

static const struct regression *regression_of(const struct small_run *run)
{
    return run->experiment->method.state;
}

/* Tasks that were not learned keep the answers of zero-shot CLIP, with every method and in both label spaces; a learned task's
 * colours are told apart. */
RUN_TEST(others_keep_their_answers, NULL)
{
    static const char *const methods[][2] = {{"method.name=ran_pac", "method.hidden=300"},
                                             {"method.name=simple_cil", NULL},
                                             {"method.name=lada", "method.rate=0.05"}};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        small_run_reopen(run, 1, WORDS(methods[m][0], methods[m][1]));
        struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
        must(small_run_train(run, 0, NULL));
        must(small_run_train(run, 1, NULL));
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

/* evaluation.label_space: task. An image of a task that was not learned keeps its zero-shot answer, one of a task that was
 * is compared with the task's own columns. */
RUN_TEST(a_task_has_its_own_classes, "method.name=rail_primal", "method.hidden=300", "method.fusion=1", NULL)
{
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    must(small_run_train(run, 0, NULL));
    must(small_run_train(run, 1, NULL));
    for (size_t j = 0; j < SMALL_RUN_TASKS; j++) {
        struct test_set *set = &evaluator->sets[j];
        size_t classes = dataset_classes(set->task->dataset), first = j == 0 ? 0 : 2;
        double *scores = small_run_keep(malloc(set->n * 5 * sizeof *scores));
        must(evaluator_task(evaluator, 1, j, NULL, &error));
        must(regression_scores(regression_of(run), set->features, set->n, scores, &error));
        for (size_t i = 0; i < set->n; i++) {
            size_t best = 0;
            for (size_t c = 0; j < 2 && c < classes; c++)
                best = (float)scores[i * 5 + first + c] > (float)scores[i * 5 + first + best] ? c : best;
            assert_int_equal(set->predicted[i], j < 2 ? best : set->zero_shot[i]);
        }
        assert_true(j == 2 || set->correct == set->n); /* fits on colours */
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
    assert_true(estimate.disk > 9 * 50 * sizeof(double) && estimate.training > 0);
    must_refuse(small_run_try(run, 1, WORDS("method.name=rail_primal", "method.hidden=1000000")), ERROR_MEMORY,
                "method.hidden", "1000000", "GiB", "lower it");
}
