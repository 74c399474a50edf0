/* Batches and texts that another program was trained on, in place of datasets, to replay recorded trajectories.
 *
 *     static const struct recorded recorded = {.context = &fixture, .batch = batch_of, .texts = texts_of};
 *     data->recorded = &recorded;                               // before replicas_open
 */
#pragma once

#include "datasets/loader.h"

/* On the host, borrowed until the next call. */
struct recorded_batch {
    const float *images;   /* normalised, [count, 3, R, R] */
    const int32_t *labels; /* NULL: not needed */
    size_t count;          /* of all ranks together */
};

/* May be called from several threads. */
struct recorded {
    void *context;
    /* Batch `step` of a loader with these settings. */
    status (*batch)(void *context, const struct loader_settings *wanted, size_t step, struct recorded_batch *batch,
                    struct error *error);
    /* Reference texts [count, context] of a task, on the host. */
    status (*texts)(void *context, size_t task, const int32_t **tokens, size_t *count, struct error *error);
};
