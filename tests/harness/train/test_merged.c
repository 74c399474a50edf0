/* Merged models: what the rules make of the tasks' changes and how ConDU's models answer, each worked out here from the weights
 * after the tasks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "core/rng.h"
#include "harness/evaluate/evaluator.h"
#include "harness/train/image_pass.h"
#include "harness/train/services/merged.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/plain.h"

static struct parameters *group_of(const struct small_run *run)
{
    const struct model *model = &run->experiment->model;
    return model->deltas != NULL ? model->deltas->parameters : model->clip->parameters;
}

/* With the zeros between tensors. */
static float *weights_of(const struct small_run *run)
{
    return small_run_group(group_of(run));
}

static void expect_weights(const struct small_run *run, const float *expected, double tolerance)
{
    float *found = weights_of(run);
    for (size_t i = 0; i < group_of(run)->values_count; i++)
        if (!(fabs((double)found[i] - (double)expected[i]) <= tolerance * (1e-2 + fabs((double)expected[i]))))
            fail_msg("value %zu: found %.9g, expected %.9g", i, (double)found[i], (double)expected[i]);
}

/* --- Rules --- */

static int by_magnitude(const void *a, const void *b)
{
    const float *x = *(const float *const *)a, *y = *(const float *const *)b;
    if (fabsf(*x) != fabsf(*y))
        return fabsf(*x) < fabsf(*y) ? 1 : -1;
    return (x > y) - (x < y);
}

/* By sorting. */
static void trim_plainly(const float *values, size_t n, size_t kept, float *trimmed)
{
    const float **order = small_run_keep(malloc((n + 1) * sizeof *order));
    for (size_t i = 0; i < n; i++) {
        order[i] = values + i;
        trimmed[i] = 0;
    }
    qsort(order, n, sizeof *order, by_magnitude);
    for (size_t i = 0; i < kept; i++)
        trimmed[order[i] - values] = *order[i];
}

/* Values that differ in all digits, that repeat, and zeros; each share of them. */
TEST(trimming_keeps_the_largest)
{
    enum { N = 700 };
    static const double shares[] = {0, 0.001, 0.002, 0.2, 0.5, 0.9, 1};
    float values[N], expected[N], trimmed[N];
    struct rng rng = rng_make(3, RNG_TEST, 0, 0);
    for (size_t i = 0; i < N; i++) {
        float drawn = (float)rng_normal(&rng, i);
        values[i] = i % 3 == 0 ? drawn : i % 3 == 1 ? roundf(drawn) / 2 : drawn * 1e-30f;
    }
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
        trim_plainly(values, N, (size_t)floor(shares[k] * N), expected);
        ties_trim(values, N, shares[k], trimmed);
        assert_memory_equal(trimmed, expected, sizeof expected);
    }
    assert_true(ties_elect(3, 2, -1, 1) == 1.5f);
    assert_true(ties_elect(1, 2, -3, 2) == -1.5f);
    assert_true(ties_elect(2, 1, -2, 1) == 0);
    assert_true(ties_elect(0, 0, 0, 0) == 0);
}

/* a + factor · b, of all weights */
static float *sum_of(const struct small_run *run, const float *a, float factor, const float *b)
{
    size_t n = group_of(run)->values_count;
    float *sum = small_run_keep(malloc(n * sizeof *sum));
    for (size_t i = 0; i < n; i++)
        sum[i] = a[i] + factor * b[i];
    return sum;
}

/* τ of the rule for changes [tasks][n], of which TIES keeps so many each, as its paper says it. */
static float *merge_plainly(const char *rule, float *const *changes, size_t tasks, size_t n, size_t kept)
{
    bool ties = strcmp(rule, "ties") == 0, largest = strcmp(rule, "mag_max") == 0;
    float *merged = small_run_keep(malloc(n * sizeof *merged)), *trimmed[SMALL_RUN_TASKS];
    for (size_t t = 0; t < tasks; t++) {
        trimmed[t] = ties ? small_run_keep(malloc(n * sizeof **trimmed)) : changes[t];
        if (ties)
            trim_plainly(changes[t], n, kept, trimmed[t]);
    }
    for (size_t i = 0; i < n; i++) {
        double sum = 0, of_sign = 0, most = 0;
        size_t values = 0;
        for (size_t t = 0; t < tasks; t++)
            sum += (double)trimmed[t][i];
        for (size_t t = 0; t < tasks; t++) {
            double value = (double)trimmed[t][i];
            most = fabs(value) >= fabs(most) ? value : most;
            of_sign += value * sum > 0 ? value : 0;
            values += value * sum > 0;
        }
        merged[i] = (float)(largest ? most : !ties ? sum : values > 0 ? of_sign / (double)values : 0);
    }
    return merged;
}

static void rule_holds(struct small_run *run, const char *rule, const char *trained, const char *start, double scale)
{
    float *changes[SMALL_RUN_TASKS];
    small_run_reopen(run, 1,
                     WORDS(small_run_format("method.name=%s", rule), small_run_format("method.start=%s", start),
                           small_run_format("method.scale=%g", scale), trained));
    const struct method *method = run->experiment->model.settings.method;
    size_t n = group_of(run)->values_count, kept = parameters_size(group_of(run)) / 5;
    float *initial = weights_of(run);
    for (size_t t = 0; t < SMALL_RUN_TASKS; t++) {
        learn(run, t);
        float *after = weights_of(run);
        changes[t] = sum_of(run, after, -1, initial);
        must(method->evaluation_begin(&run->experiment->method, &error));
        expect_weights(run,
                       sum_of(run, initial, (float)(scale > 0 ? scale : 1.0 / (double)(t + 1)),
                              merge_plainly(rule, changes, t + 1, n, kept)),
                       1e-6);
        must(method->evaluation_end(&run->experiment->method, &error));
        expect_weights(run, strcmp(start, "previous") == 0 ? after : initial, 0);
    }
}

RUN_TEST(rules_merge_what_tasks_changed, "method.name=continual_ft", NULL)
{
    static const char weights[] = "method.train=weights", deltas[] = "method.train=deltas";
    rule_holds(run, "mag_max", weights, "previous", 0.5);
    rule_holds(run, "mag_max", deltas, "initial", 1);
    rule_holds(run, "task_arithmetic", weights, "initial", 0.4);
    rule_holds(run, "task_arithmetic", deltas, "previous", 0);
    rule_holds(run, "ties", weights, "initial", 1);
    rule_holds(run, "ties", deltas, "previous", 0.3);
}

/* --- ConDU --- */

/* The changes of tasks 0 … tasks − 1 as they are rebuilt, in place: as the paper has it, value by value. */
static void unify_plainly(const struct parameters *group, float *const *changes, size_t tasks, float *unified)
{
    double before[SMALL_RUN_TASKS] = {0}, after[SMALL_RUN_TASKS] = {0};
    for (size_t k = 0; k < group->count; k++)
        for (size_t j = 0; j < group->list[k].size; j++) {
            size_t i = group->list[k].offset + j;
            float sum = 0, share = 1.0f / (float)group->list[k].size;
            unified[i] = 0;
            for (size_t t = 0; t < tasks; t++)
                sum += changes[t][i];
            float sign = sum > 0 ? 1.0f : -1.0f;
            for (size_t t = 0; t < tasks; t++)
                unified[i] = fmaxf(unified[i], changes[t][i] * sign);
            for (size_t t = 0; t < tasks; t++) {
                before[t] += (double)(fabsf(changes[t][i]) * share);
                changes[t][i] = changes[t][i] * sign > 0 ? unified[i] * sign : 0;
                after[t] += (double)(fabsf(changes[t][i]) * share);
            }
            unified[i] *= sign;
        }
    for (size_t t = 0; t < tasks; t++)
        for (size_t i = 0; i < group->values_count; i++)
            changes[t][i] *= (float)(before[t] / after[t]);
}

/* The weights after a task cannot be seen, as the next one begins with the initial ones; those of a task trained alone are the
 * same. */
RUN_TEST(models_are_rebuilt, "method.name=continual_ft", NULL)
{
    float *changes[SMALL_RUN_TASKS];
    size_t n = group_of(run)->values_count;
    float *initial = weights_of(run), *unified = small_run_keep(calloc(n, sizeof *unified));
    for (size_t t = 0; t < SMALL_RUN_TASKS; t++) {
        small_run_reopen(run, 1, WORDS("method.name=finetune"));
        learn(run, t);
        changes[t] = sum_of(run, weights_of(run), -1, initial);
    }
    small_run_reopen(run, 1, WORDS("method.name=condu"));
    const struct method *method = run->experiment->model.settings.method;
    struct method_run *own = &run->experiment->method;
    for (size_t t = 0; t < SMALL_RUN_TASKS; t++) {
        learn(run, t);
        unify_plainly(group_of(run), changes, t + 1, unified);
        for (size_t k = 0; k <= t; k++) {
            must(method->evaluation_model(own, k + 1, &error));
            /* a change is a small part of a weight, which rounds it */
            expect_weights(run, sum_of(run, initial, 1, changes[k]), 1e-4);
        }
        must(method->evaluation_model(own, 0, &error));
        expect_weights(run, initial, 0);
        must(method->evaluation_begin(own, &error));
        expect_weights(run, sum_of(run, initial, 1, unified), 1e-4);
        must(method->evaluation_end(own, &error));
        expect_weights(run, initial, 0);
    }
}

/* The cosine of an image to the nearest prototype of a task, from its training images and class names in θ_0. */
static double nearness(struct small_run *run, const struct task *task, const float *image)
{
    enum { EMBED = 16, WIDTH = 64, MOST = 64 };
    struct run *e = run->experiment;
    float features[MOST * EMBED], means[MOST * WIDTH];
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN), classes = dataset_classes(task->dataset);
    double best = -2;
    assert_true(n <= MOST);
    must(frozen_features(&e->model, &e->data, task->dataset, SPLIT_TRAIN, NULL, n, means, features, NULL, &error));
    float *texts = take_class_features(run, task, -1);
    for (size_t c = 0; c < classes; c++) {
        double prototype[EMBED] = {0}, unit[EMBED] = {0}, dot = 0, square = 0;
        for (size_t i = 0; i < n; i++)
            if ((size_t)dataset_label(task->dataset, SPLIT_TRAIN, i) == c) /* as many of each */
                plain_add_unit(prototype, features + i * EMBED, EMBED, (double)classes / (double)n);
        plain_add_unit(prototype, texts + c * EMBED, EMBED, 1);
        plain_add_unit(unit, image, EMBED, 1);
        for (size_t i = 0; i < EMBED; i++) {
            dot += prototype[i] * unit[i];
            square += prototype[i] * prototype[i];
        }
        best = fmax(best, dot / sqrt(square));
    }
    return best;
}

/* The models that should vote on each image: the initial one and the nearest two of three tasks'. */
static void expect_votes(struct small_run *run, const struct test_set *set, const uint8_t *votes)
{
    for (size_t i = 0; i < set->n; i++) {
        double near[SMALL_RUN_TASKS], least = 2;
        for (size_t t = 0; t < SMALL_RUN_TASKS; t++) {
            near[t] = nearness(run, &run->experiment->data.tasks[t], set->features + i * 16);
            least = fmin(least, near[t]);
        }
        const uint8_t *found = votes + i * (SMALL_RUN_TASKS + 1);
        assert_int_equal(found[0], 1);
        for (size_t t = 0; t < SMALL_RUN_TASKS; t++)
            assert_int_equal(found[1 + t], near[t] > least);
    }
}

/* totals [n, classes] += 100 · cosines of the images of a set whose row in votes has this model */
static void add_scores(struct small_run *run, const struct test_set *set, size_t model, const uint8_t *votes,
                       double *totals)
{
    struct run *e = run->experiment;
    struct evaluator *alone;
    size_t classes = dataset_classes(set->task->dataset), embed = e->model.clip->dimensions.embed;
    must(e->model.settings.method->evaluation_model(&e->method, model, &error));
    must(evaluator_create(&alone, &e->model, &e->data, NULL, NULL, &error));
    must(evaluator_without_adapters(alone, set->task->index, NULL, &error));
    float *texts = take_class_features(run, set->task, -1);
    for (size_t i = 0; i < set->n; i++) {
        const float *image = alone->sets[set->task->index].routed.features + i * embed;
        for (size_t c = 0; votes[i * (SMALL_RUN_TASKS + 1) + model] && c < classes; c++)
            totals[i * classes + c] +=
                100 * plain_dot(image, texts + c * embed, embed) / sqrt(plain_dot(image, image, embed));
    }
    evaluator_destroy(alone);
}

static void models_answer(struct small_run *run, const char *task, const char *trained)
{
    enum { MODELS = SMALL_RUN_TASKS + 1 };
    const char *const *words = WORDS("method.name=condu", task, trained, "method.votes=2");
    bool given = strcmp(task, "method.task=unknown") != 0;
    small_run_reopen(run, 1, words);
    for (size_t t = 0; t < SMALL_RUN_TASKS; t++) {
        learn(run, t);
        if (t == 1) /* votes go by what is kept of earlier tasks */
            small_run_resume(run, 2, 0, words);
    }
    struct run *e = run->experiment;
    const struct method *method = e->model.settings.method;
    must(method->evaluation_end(&e->method, &error));
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    evaluator->labels.seen = SMALL_RUN_TASKS;
    for (size_t j = 0; j < SMALL_RUN_TASKS; j++) {
        struct test_set *set = &evaluator->sets[j];
        size_t classes = dataset_classes(set->task->dataset);
        uint8_t *votes = small_run_keep(calloc(set->n, MODELS));
        double *totals = small_run_keep(calloc(set->n * classes, sizeof *totals));
        arena_reset(&e->model.step_memory);
        must(method->vote(&e->method, set->task, NULL, set->n, votes, &error));
        for (size_t i = 0; i < set->n; i++)
            for (size_t m = 0; m < MODELS; m++)
                assert_int_equal(votes[i * MODELS + m], m == (given ? j + 1 : 0));
        must(method->vote(&e->method, set->task, set->features, set->n, votes, &error));
        if (!given)
            expect_votes(run, set, votes);
        must(evaluator_refresh(evaluator, &error));
        must(evaluator_task(evaluator, SMALL_RUN_TASKS - 1, j, NULL, &error));
        for (size_t m = 0; m < MODELS; m++)
            add_scores(run, set, m, votes, totals);
        for (size_t i = 0; i < set->n * classes; i++)
            assert_true(totals[i / classes * classes + set->predicted[i / classes]] > totals[i] - 1e-3);
        must(method->evaluation_end(&e->method, &error));
    }
}

RUN_TEST(given_tasks_have_their_model_and_others_are_voted_on, "method.name=continual_ft", NULL)
{
    models_answer(run, "method.task=given", "method.train=deltas");
    models_answer(run, "method.task=auto", "method.train=weights");
    models_answer(run, "method.task=unknown", "method.train=weights");
    models_answer(run, "method.task=unknown", "method.train=deltas");
}

/* Then the task would tell part of the answer. */
RUN_TEST(no_task_is_given_where_all_classes_compete, "method.name=condu", "evaluation.label_space=all", NULL)
{
    uint8_t votes[2];
    struct run *e = run->experiment;
    learn(run, 0);
    must(e->model.settings.method->vote(&e->method, &e->data.tasks[0], NULL, 1, votes, &error));
    assert_int_equal(votes[0], 1);
    assert_int_equal(votes[1], 0);
}

/* --- Memory --- */

/* Memory does not grow with the tasks, but for the bits of condu. */
RUN_TEST(estimates_count_what_is_kept, "method.name=continual_ft", NULL)
{
    static const struct {
        const char *name;
        double memory, kept; /* bytes a value */
    } expected[] = {{"mag_max", 12, 4}, {"task_arithmetic", 12, 4}, {"ties", 24, 12}, {"condu", 12.375, 4.375}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct method_cost cost = {0};
        small_run_reopen(run, 1, WORDS(small_run_format("method.name=%s", expected[i].name)));
        double n = (double)parameters_size(group_of(run)), rows = i == 3 ? 9 * 16 * sizeof(float) : 0;
        run->experiment->model.settings.method->cost(&run->experiment->method, &cost);
        assert_true(fabs(cost.memory - expected[i].memory * n - rows) < 1);
        assert_true(fabs(cost.kept - expected[i].kept * n - rows) < 1);
    }
}

static void read_opposites(const void *context, size_t task, size_t first, size_t count, float *delta)
{
    static const float deltas[2][2] = {{3, 0}, {-3, 0}};
    memcpy(delta, deltas[task] + first, count * sizeof *delta);
}

/* A mean of exactly 0 has the sign −1, and nothing is left of a change of 0. */
TEST(changes_that_cancel_are_negative)
{
    struct unified u = {0};
    float delta[2];
    must(unified_open(&u, 2, &error));
    must(unified_fit(&u, 2, (const size_t[]){2}, 1, read_opposites, NULL, &error));
    assert_true(u.values[0] == -3 && u.values[1] == 0);
    assert_true(!unified_mask(&u, 0, 0) && unified_mask(&u, 1, 0));
    assert_true(!unified_mask(&u, 0, 1) && !unified_mask(&u, 1, 1));
    unified_rebuild(&u, 1, 0, 2, delta);
    assert_true(delta[0] == -3 && delta[1] == 0);
    unified_close(&u);
}
