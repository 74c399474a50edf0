/* The metrics of continual learning. Each is a part of results/metrics.sql, from which views, questions, comparisons
 * and pages are made.
 *
 *     -- title: Forgetting
 *     -- place: 40             among the others
 *     -- formula: greatest a(i, j) from i = j on, less a(T, j)      in words; a(i, j): accuracy on task j of T after task i
 *     -- source: Chaudhry et al. (ECCV 2018)                        none: it is defined here
 *     -- best: lowest          or highest; none: neither end stands out
 *     -- low: 0                percent that it cannot leave
 *     -- high: 100
 *     -- skips: 1              tasks at an end for which it is not defined
 *     -- images: 1             where classes accumulate it is of the accuracies over all images so far, no mean over tasks
 *     -- latest: accuracy      SQL: what the papers' table has of a task that was not tested after each other; accuracy and
 *                              after_task are its latest ones, after_task -1: it was never trained; none: nothing
 *     -- tags: board|paper     where it is shown beside the lists of all: main (with its spread, and compared unless others are
 *                              asked for), board (a mean on leaderboards), paper (a block of the papers' table)
 *     max(accuracy) FILTER (WHERE after_task >= task) - …           an aggregate of SQL over a task's column of the matrix
 *
 * Its rows have `task` and `tasks`, `after_task` (from 0; -1: zero-shot CLIP) and `accuracy` in percent; null is not defined. The
 * metric of a run is the mean over its tasks.
 *
 *     metrics_expand(&sql, "SELECT run\n-- each board: , avg({name}) AS \"{title}\"\nFROM metrics\n", NULL);
 *
 * A line "-- each TAG: TEXT" stands for TEXT once for each metric with the tag (none: all; other: all that lack main; asked: those
 * of the call), with what the head says in place of {title} and so on, {name} of the part and {sql} of its aggregate.
 */
#pragma once

#include <stdbool.h>

#include "core/text.h"

/* Appends the script, its lines "-- each" expanded; asked: names, as "last|gain", or NULL. */
void metrics_expand(struct text *sql, const char *script, const char *asked);

bool metric_exists(const char *name);
