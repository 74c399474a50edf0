/* The operations on stacked experts of models/dispatch.h as a composition of others: samples are sorted into slots, all
 * slots of an expert go through one product, and the outputs are combined. It is what a backend does where it has no
 * kernels of its own for them.
 *
 *     status cpu_experts(struct backend *backend, const struct experts *o, struct error *error)
 *     {
 *         return experts_by_slots(backend, o, error);
 *     }
 */
#pragma once

#include "models/backend.h"

status experts_by_slots(struct backend *backend, const struct experts *o, struct error *error);
status experts_backward_by_slots(struct backend *backend, const struct experts_backward *o, struct error *error);
status experts_backward_input_by_slots(struct backend *backend, const struct experts_backward_input *o,
                                       struct error *error);

/* Whether a GPU has kernels of its own for stacks of this shape, where samples choose. In bf16 precision these read copies of the
 * weights, which it keeps (models/cuda/experts.cu). */
static inline bool experts_go_by_sample(enum activation activation, size_t width, size_t hidden)
{
    enum { WHOLE = 8, MOST = 128 };
    return activation == ACTIVATION_RELU && width % WHOLE == 0 && hidden % WHOLE == 0 && hidden <= MOST;
}
