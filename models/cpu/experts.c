/* Experts as a composition of other operations. */
#include "models/experts.h"
#include "models/cpu/cpu.h"

status cpu_experts(struct backend *backend, const struct experts *o, struct error *error)
{
    return experts_by_slots(backend, o, error);
}

status cpu_experts_backward(struct backend *backend, const struct experts_backward *o, struct error *error)
{
    return experts_backward_by_slots(backend, o, error);
}

status cpu_experts_backward_input(struct backend *backend, const struct experts_backward_input *o, struct error *error)
{
    return experts_backward_input_by_slots(backend, o, error);
}
