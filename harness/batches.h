/* The batches of a task on their way to the device: decoded by threads of the host, copied while the step before is
 * computed.
 *
 *     struct batches *batches;
 *     TRY(batches_open(&batches, e, task, first, error));             // iterations first … task->settings.iterations − 1
 *     for (each iteration) {
 *         TRY(batches_take(batches, &batch, error));                  // in the step's arena, which the caller has reset
 *         ... the operations of the step ...
 *         batches_advance(batches);                                   // the next one sets out
 *     }
 *     batches_close(batches);
 */
#ifndef MTIL_HARNESS_BATCHES_H
#define MTIL_HARNESS_BATCHES_H

#include "harness/experiment.h"

struct batches;

status batches_open(struct batches **batches, struct experiment *experiment, const struct task *task, size_t first,
                    struct error *error);

/* The next batch, at the same addresses for every batch of a size. An image that cannot be read is an error here. */
status batches_take(struct batches *batches, struct batch *batch, struct error *error);

/* Decodes the batch after it, unless there is none, and lets it be copied. Takes no longer than that. */
void batches_advance(struct batches *batches);

void batches_close(struct batches *batches); /* NULL is allowed */

#endif
