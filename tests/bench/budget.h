/* What a step asks of a device: for each part of it and each operation the calls, the nodes of a recorded graph, and the
 * bytes of all operands, each counted once; and the nodes by kernel. Every operation is recorded by itself, so nothing
 * has to be computed for the count. Scratch memory and roundings that an operation makes for itself are no operands.
 *
 *     budget_begin(backend, bench.byte);
 *     budget_part("image tower");
 *     ... the operations of a step ...
 *     budget_print(backend);
 */
#pragma once

#include "models/backend.h"

void budget_begin(struct backend *backend, const void *byte); /* byte: of the device, read in order to wait for it */
void budget_part(const char *name);                           /* borrowed; of the operations from here on */
size_t budget_counted(void);                                  /* nodes of all operations so far */
void budget_print(struct backend *backend); /* Markdown; the table of operations is the backend's own again */

/* The nodes of one graph of body, which has run before; 0 where the backend records nothing. */
status budget_nodes(struct backend *backend, recorded_body body, void *context, size_t *nodes, struct error *error);

/* What each operation takes within a step, of a backend that computes at once (a CPU). Products are kept apart by shape and by what is
 * fused with them. */
void timed_begin(struct backend *backend);
void timed_print(struct backend *backend,
                 size_t steps); /* per step, the longest first; the table is the backend's again */

/* Called by whoever sees nodes of a graph that is being recorded (graph_nodes.cu, the emulated device). */
void graph_node_met(const char *kernel);
