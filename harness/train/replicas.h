/* One run trained on several GPUs: every GPU has a replica of the experiment and takes its share of each batch; gradients,
 * used experts and selection counts are summed up over all of them, so that all replicas stay the same.
 *
 *     TRY(replicas_open(e, error));                               // as many as run.gpus says; none where that is one
 *     ... in train_task:
 *     TRY(replicas_start(e->replicas, training, train_share, error));     // they follow in threads of their own
 *     status result = train_share(training, error);                       // what every member does
 *     TRY(replicas_finish(e->replicas, result, error));
 *
 * The experiment itself is member 0, the leader: it alone evaluates, freezes and is saved. What it has when training
 * starts is copied to the others. The same number of GPUs gives the same bits, another number other roundings.
 */
#ifndef MTIL_HARNESS_TRAIN_REPLICAS_H
#define MTIL_HARNESS_TRAIN_REPLICAS_H

#include "harness/run/experiment.h"

struct replicas;
struct training;
typedef status (*replicas_body)(const struct training *training, struct error *error);

status replicas_open(struct experiment *leader, struct error *error);
void replicas_close(struct experiment *leader);

/* Member 0 is the leader. NULL past the last one. */
struct experiment *replicas_at(const struct replicas *replicas, size_t member);

status replicas_start(struct replicas *replicas, const struct training *training, replicas_body body,
                      struct error *error);

/* Waits for the others. result is the leader's; where another member failed first, its error is the one that is told. */
status replicas_finish(struct replicas *replicas, status result, struct error *error);

/* Called by each member before a step, when nothing of its own can fail any more but the device: false when one of them
 * has left. */
bool replicas_agree(struct replicas *replicas);

/* Of a term of the loss that every member computes whole: the weights of all add up to 1. */
float replicas_weight(const struct experiment *member);

/* Parts of a member's step; nothing happens where it works alone. begin: before loss and gradients, which compute = false
 * says are none of this member's, for want of images. share: after them. */
status replicas_begin_step(struct experiment *member, bool compute, struct error *error);
status replicas_share(struct experiment *member, struct error *error);

#endif
