/* Data-parallel training of one run: every GPU has a replica of the model and takes its share of each batch;
 * gradients, used experts and selection counts are summed over all ranks, so that the replicas stay identical.
 *
 *     TRY(replicas_open(run, error));                                 // run.gpus replicas; none if it is 1
 *     ... in train_task:
 *     TRY(replicas_start(model->work.replicas, training, train_share, error));     // the other ranks, each in a thread
 *     status result = train_share(training, error);                       // the work of every rank
 *     TRY(replicas_finish(model->work.replicas, result, error));
 *
 * The run itself is rank 0, the leader; only the leader evaluates, freezes and is saved. Its state is copied to
 * the other ranks when training starts. The same number of GPUs gives the same bits; another number rounds differently.
 */
#pragma once

#include "harness/train/method.h"

struct replicas;
struct training;
typedef status (*replicas_body)(const struct training *training, struct error *error);

/* Opens the replicas of a method's run; replicas_close, before the run is closed, is for its model. */
status replicas_open(struct method_run *leader, struct error *error);
void replicas_close(struct model *leader);

/* Rank 0 is the leader. NULL past the last one. */
struct method_run *replicas_at(const struct replicas *replicas, size_t rank);

status replicas_start(struct replicas *replicas, const struct training *training, replicas_body body,
                      struct error *error);

/* Waits for the other ranks. result is the leader's; if another rank failed first, its error is reported. */
status replicas_finish(struct replicas *replicas, status result, struct error *error);

/* Called by each rank before a step, when nothing but the device can still fail on this rank, and again before its sums: a rank
 * that is in a sum must not wait for one that still maps memory, which may wait for that sum. False when another rank has
 * left. */
bool replicas_agree(struct replicas *replicas);

/* The weight of a loss term that every rank computes in full; the weights of all ranks add up to 1. */
float replicas_weight(const struct model *model);

/* Parts of a rank's step; no-ops without a process group. begin: before loss and gradients; compute = false when this
 * rank has no images. share: sums loss, gradients and counts over the ranks. */
status replicas_begin_step(struct model *model, bool compute, struct error *error);
status replicas_share(struct model *model, struct error *error);
