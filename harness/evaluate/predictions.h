/* Predictions of test images from their features and those of classes.
 *
 *     TRY(predict_features(evaluator, set, features, items, n, router, &(struct scoring){0}, predicted, error));
 */
#pragma once

#include "harness/evaluate/evaluator.h"

/* Zeros: the head's scores. */
struct scoring {
    struct method_run *method; /* its own scores */
    float *totals; /* [images of the set, classes]: sums of the scores over models, to which these are added */
};

/* predicted[item] of n items (NULL: items 0 … n − 1, without totals) from features [images of the set, embed]: of the classes
 * that compete, encoded through a router (−1: none), that of the highest score, the first of equal ones. ERROR_FORMAT names an
 * image whose scores are not finite. */
status predict_features(struct evaluator *evaluator, struct test_set *set, const float *features, const uint32_t *items,
                        size_t n, int router, const struct scoring *by, uint16_t *predicted, struct error *error);
