/* Stages batches: threads of the host decode them and copy them to the device while the previous batch is computed.
 *
 *     struct batches *batches;
 *     TRY(batches_open(&batches, model, data, &loader_settings, first, end, error));    // batches first … end − 1 of the loader
 *     for (each of them) {
 *         TRY(batches_take(batches, &batch, error));                  // in the step's arena, which the caller has reset
 *         ... operations ...
 *         batches_advance(batches);                                   // starts the copy of the next one
 *         ... what waits for the device ...
 *     }
 *     batches_close(batches);
 *
 * struct recorded has batches and texts that another program was trained on, in place of datasets, to replay recorded
 * trajectories.
 *
 *     static const struct recorded recorded = {.context = &fixture, .batch = batch_of, .texts = texts_of};
 *     data->recorded = &recorded;                               // before replicas_open
 */
#pragma once

#include "core/scope.h"
#include "datasets/loader.h"
#include "harness/model/model.h"
#include "harness/scenario/data.h"

/* A batch on the host, borrowed until the next call. */
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

struct batches;

/* A batch of a task on the device. */
struct batch {
    struct tensor images;       /* u8 [count, R, R, 3]; recorded: f32 [count, 3, R, R] */
    struct image_labels labels; /* two per image with mixup or CutMix; a loss uses both */
    size_t count;
    size_t first, total; /* its position in a batch that is shared among ranks, and the size of that batch */
};

/* settings as for loader_create; threads and `ahead` are chosen here. */
status batches_open(struct batches **batches, struct model *model, const struct data *data,
                    const struct loader_settings *settings, size_t first, size_t end, struct error *error);

/* The training batches of a task, as its iterations take them: this rank's share of each. */
status batches_open_task(struct batches **batches, struct model *model, const struct data *data,
                         const struct task *task, size_t first, size_t end, struct error *error);

/* The same, and all of each: for what one rank does alone. */
status batches_open_whole(struct batches **batches, struct model *model, const struct data *data,
                          const struct task *task, size_t first, size_t end, struct error *error);

/* The next batch; batches of one size have the same addresses. An image that cannot be read is an error here. */
status batches_take(struct batches *batches, struct batch *batch, struct error *error);

/* Takes the images of the next batch, without labels, into memory that outlives a step: from the arena, unless the
 * tensor has memory of an earlier batch of that size. */
status batches_take_images(struct batches *batches, struct arena *arena, struct tensor *images, struct error *error);

/* Decodes the following batch, if any, and starts its copy without waiting for it. */
void batches_advance(struct batches *batches);

void batches_close(struct batches *batches); /* NULL is allowed */
SCOPED_POINTER(struct batches, batches_close)
