/* Label spaces of several tasks: every image among the classes of all (X-TAIL) or of those trained so far
 * (class-incremental), worked out here from the class features. */
#include <math.h>
#include <string.h>

#include "harness/evaluate/evaluator.h"
#include "tests/harness/train/outcome.h"
#include "tests/harness/train/plain.h"

enum { CLASSES = 2 + 3 + 4, EMBED = 16 };

#define X_TAIL "evaluation.label_space=all", "data.shots=4"

/* Class features of all tasks through a router, one after the other. */
static void all_classes(struct small_run *run, int router, float *all)
{
    for (size_t t = 0; t < SMALL_RUN_TASKS; t++) {
        const struct task *task = &run->experiment->data.tasks[t];
        size_t count = dataset_classes(task->dataset) * EMBED;
        float *host = take_class_features(run, task, router);
        for (size_t c = 0; c < count; c += EMBED)
            assert_true(fabs(plain_dot(host + c, host + c, EMBED) - 1) < 1e-5);
        memcpy(all, host, count * sizeof *host);
        all += count;
    }
}

/* Every prediction is the best class of all, the first of equal ones; where two that differ are within rounding, either. */
static void expect_nearest(const struct test_set *set, const float *images, const float *all, size_t begin,
                           size_t classes)
{
    for (size_t i = 0; i < set->n; i++) {
        const float *image = images + i * EMBED;
        double size = sqrt(plain_dot(image, image, EMBED)), best = -INFINITY;
        for (size_t c = begin; c < classes; c++)
            best = fmax(best, plain_dot(image, all + c * EMBED, EMBED) / size);
        assert_true(set->predicted[i] >= begin && set->predicted[i] < classes);
        const float *chosen = all + set->predicted[i] * EMBED;
        assert_true(plain_dot(image, chosen, EMBED) / size > best - 1e-6);
        for (size_t c = begin; c < set->predicted[i]; c++) /* an equal one before it would have been taken */
            assert_memory_not_equal(all + c * EMBED, chosen, EMBED * sizeof *chosen);
        assert_int_equal(set->right[i], set->predicted[i] == (uint16_t)set->labels[i]);
    }
}

static const int32_t first[SMALL_RUN_TASKS] = {0, 2, 5};

RUN_TEST(a_task_has_its_own_classes, NULL)
{
    float all[CLASSES * EMBED];
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    all_classes(run, -1, all);
    for (size_t j = 0; j < SMALL_RUN_TASKS; j++) {
        const struct test_set *set = &evaluator->sets[j];
        expect_nearest(set, set->features, all + (size_t)first[j] * EMBED, 0, dataset_classes(set->task->dataset));
        assert_true(set->n == 3 * (j + 2) && set->router[0] == -1 && set->router[set->n - 1] == -1);
    }
}

/* All weights are trained: what was computed before a task is not what holds after it. */
RUN_TEST(weights_that_change_are_asked_again, "evaluation.label_space=all", "method.name=continual_ft",
         "training.iterations=20", NULL)
{
    float before[CLASSES * EMBED], after[CLASSES * EMBED];
    struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
    all_classes(run, -1, before);
    assert_memory_equal(evaluator->labels.joint, before, sizeof before);
    learn(run, 1);
    must(evaluator_refresh(evaluator, &error));
    all_classes(run, -1, after);
    assert_memory_not_equal(before, after, sizeof after);
    for (size_t j = 0; j < SMALL_RUN_TASKS; j++) {
        must(evaluator_without_adapters(evaluator, j, NULL, &error));
        expect_nearest(&evaluator->sets[j], evaluator->sets[j].routed.features, after, 0, CLASSES);
    }
    assert_memory_equal(evaluator->labels.joint, after, sizeof after);
}

/* Labels follow one another, also of names that repeat: "red" is a class of every task, and without adapters all three are equal. After
 * each task its classes join, also for images that no adapters answer; all of them are there from the start in the space of
 * all, and before any task. In an open space an image of a task that is yet to come is compared with its own. */
static void classes_join(struct small_run *run, const char *space, bool open, bool all_at_once)
{
    static const char *const keeping[] = {"run.keep_features=yes", "run.keep_features=no"};
    static const size_t ends[] = {2, 5, CLASSES};
    for (size_t k = 0; k < 2; k++) {
        float all[CLASSES * EMBED];
        small_run_reopen(run, 1,
                         WORDS(space, keeping[k], "training.iterations=20", "training.learning_rate=1e-2",
                               all_at_once ? "data.shots=4" : "adapter.routers=one",
                               all_at_once ? NULL : "selector.kind=none"));
        struct evaluator *evaluator = small_run_evaluator(run, NULL, SMALL_RUN_TASKS);
        all_classes(run, -1, all);
        for (size_t j = 0; j < SMALL_RUN_TASKS; j++) {
            const struct test_set *set = &evaluator->sets[j];
            expect_nearest(set, set->features, all, open && j > 0 ? ends[j - 1] : 0, open ? ends[j] : CLASSES);
            for (size_t i = 0; i < set->n; i++)
                assert_int_equal(set->labels[i], first[j] + dataset_label(set->task->dataset, SPLIT_TEST, i));
        }
        for (size_t t = 0; t < SMALL_RUN_TASKS; t++) { /* nothing stale is kept */
            learn(run, t);
            must(evaluator_refresh(evaluator, &error));
            evaluator->labels.seen = t + 1;
            for (size_t j = 0; j < (open || all_at_once ? SMALL_RUN_TASKS : t + 1); j++) {
                struct test_set *set = &evaluator->sets[j];
                size_t begin = open && j > t ? ends[j - 1] : 0, end = all_at_once ? CLASSES : ends[j > t ? j : t];
                if (all_at_once)
                    must(evaluator_with_router(evaluator, j, (int)t, NULL, &error));
                else
                    must(evaluator_task(evaluator, t, j, NULL, &error));
                assert_true(open || set->router[0] == (all_at_once ? (int)t : 0)); /* the only one */
                all_classes(run, set->router[0], all);
                expect_nearest(set, set->routed.features, all, begin, end);
                must(evaluator_with_router(evaluator, j, -1, NULL, &error));
                all_classes(run, -1, all);
                expect_nearest(set, set->features, all, begin, end);
            }
        }
    }
}

RUN_TEST(classes_join_after_each_task, NULL)
{
    classes_join(run, "evaluation.label_space=all", false, true); /* a router has class features of all tasks */
    classes_join(run, "evaluation.label_space=seen", false, false);
    classes_join(run, "evaluation.label_space=open", true, false);
}
