/* Test accuracies: one row of the accuracy matrix after each task; only accuracies that may have changed are
 * computed.
 *
 *     TRY(evaluator_create(&evaluator, model, data, method, selector, error));
 *                                                            // selector NULL: the data names the task
 *     TRY(evaluator_zero_shot(evaluator, j, stop, error));       // features of zero-shot CLIP, kept
 *     TRY(evaluator_refresh(evaluator, error));                  // after training
 *     evaluator->labels.seen = checkpoint + 1;                   // tasks that are trained; before: all, for label_space seen
 *     TRY(evaluator_task(evaluator, checkpoint, j, stop, error));
 *     evaluator->sets[j].correct …
 */
#pragma once

#include "core/scope.h"
#include "harness/evaluate/chosen_experts.h"
#include "harness/evaluate/label_space.h"
#include "harness/evaluate/shared_features.h"
#include "harness/selectors/selector.h"
#include "harness/train/method.h"

/* The test images of a task, in order. Host memory. */
struct test_set {
    const struct task *task;
    size_t n;
    int32_t *labels;         /* in the label space */
    float *means, *features; /* frozen: [n, image_width], [n, embed] */
    uint16_t *zero_shot;     /* predictions of zero-shot CLIP */
    struct cached_images routed;
    float **errors;      /* [coders + 1] the selector's errors [n], NULL: not computed yet */
    size_t errors_after; /* tasks that the selector was trained for when it computed them */
    /* of the last evaluation */
    uint16_t *predicted;
    int16_t *router;
    uint8_t *right;
    size_t correct;
    struct class_experts experts; /* of the image tower, if they were counted: counts_experts */
    struct patch_experts patches; /* likewise, where tokens choose experts: evaluation.patch_images */
};

/* One without features, to be filled with predictions: set.predicted, and set.router, which is −1 everywhere. */
struct test_set test_set_of(const struct task *task);
void test_set_judge(struct test_set *set); /* which predictions are right, and how many */
void test_set_free(struct test_set *set);

struct evaluator {
    struct model *model;
    const struct data *data;
    struct method_run *method; /* open; may replace the scores. NULL: nothing is trained */
    struct selector *selector;
    size_t coders; /* tasks of the selector; one more for errors of unrelated images */
    struct feature_cache *cache;
    struct label_space labels;
    struct shared_features shared; /* of zero-shot CLIP */
    struct test_set *sets;
    /* For later evaluations with routers: count which experts the images of each class choose. There is nothing to count
     * where experts are averaged instead of chosen, or the image tower has none. Where tokens choose experts, counting
     * encodes every image again, and keeps the experts of the patches of evaluation.patch_images images. */
    bool counts_experts;
};

status evaluator_create(struct evaluator **evaluator, struct model *model, const struct data *data,
                        struct method_run *method, struct selector *selector, struct error *error);
void evaluator_destroy(struct evaluator *evaluator); /* NULL is allowed */
SCOPED_POINTER(struct evaluator, evaluator_destroy)

/* To be called after the model was trained, merged or loaded. Features whose router and experts are unchanged stay
 * cached. */
status evaluator_refresh(struct evaluator *evaluator, struct error *error);

/* Computes and keeps the zero-shot features of task j's test images; its set then holds the zero-shot evaluation. */
status evaluator_zero_shot(struct evaluator *evaluator, size_t j, const struct stop *stop, struct error *error);

/* Evaluates task j after task k: tasks 0 … k are trained. Images for which the selector chooses no router keep their
 * zero-shot prediction. */
status evaluator_task(struct evaluator *evaluator, size_t checkpoint, size_t j, const struct stop *stop,
                      struct error *error);

/* Every image of the set through one router (−1: none), ignoring the selector. */
status evaluator_with_router(struct evaluator *evaluator, size_t j, int router, const struct stop *stop,
                             struct error *error);

/* Every image of the set through the current model, without adapters. */
status evaluator_without_adapters(struct evaluator *evaluator, size_t j, const struct stop *stop, struct error *error);
