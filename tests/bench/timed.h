/* What each operation takes within a step, of a backend that computes at once (a CPU): its table is replaced by one that
 * looks at the clock. Products are kept apart by shape and by what is fused with them.
 *
 *     timed_begin(backend);
 *     ... steps ...
 *     timed_print(backend, steps);
 */
#pragma once

#include "models/backend.h"

void timed_begin(struct backend *backend);
void timed_print(struct backend *backend,
                 size_t steps); /* per step, the longest first; the table is the backend's own again */
