#include "harness/evaluate/routing.h"

#include <stdlib.h>
#include <string.h>

static status keep_choices(struct routing *routing, size_t per_sample, struct error *error)
{
    struct adapters *adapters = routing->experiment->model.adapters;
    size_t shape[] = {adapters->towers[routing->tower].decisions, routing->count, per_sample};
    TRY(tensor_take(&routing->choices, &routing->experiment->model.step_memory, TENSOR_I32, "chosen experts", 3, shape,
                    error));
    TRY(tensor_take(&routing->gates, &routing->experiment->model.step_memory, TENSOR_F32, "gates", 3, shape, error));
    adapters_keep_choices(adapters, routing->tower, routing->choices.data, routing->gates.data);
    return OK;
}

status routing_begin(struct routing *routing, struct experiment *e, enum tower tower, size_t count, int router,
                     struct encoding *encoding, struct error *error)
{
    *routing = (struct routing){.experiment = e, .tower = tower, .count = count};
    *encoding = (struct encoding){.arena = &e->model.step_memory, .state = e->model.state};
    if (router < 0 || !adapters_in_tower(e->model.adapters, tower))
        return OK;
    routing->routed = true;
    if (adapters_choices(e->model.adapters, tower) > 0)
        TRY(keep_choices(routing, e->model.adapters->settings.top_k, error));
    TRY(experiment_fill(e, &e->model.step_memory, count, router, &encoding->router, error));
    encoding->hooks = adapters_hooks(e->model.adapters, tower);
    return OK;
}

status routing_see_tokens(struct routing *routing, size_t positions, struct error *error)
{
    return routing->routed
               ? keep_choices(routing, positions * routing->experiment->model.adapters->settings.top_k, error)
               : OK;
}

/* [decisions, count, …] on the device as [count, decisions, …] on the host; both types have as many bytes. */
static status by_sample(const struct routing *routing, const struct tensor *kept, void *to, struct error *error)
{
    struct backend *backend = routing->experiment->model.backend;
    size_t decisions = kept->shape[0], bytes = kept->shape[2] * sizeof(int32_t);
    char *by_decision = malloc(tensor_bytes(kept));
    if (by_decision == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for the experts of %zu samples", routing->count);
    status result = backend->ops->download(backend, by_decision, kept->data, tensor_bytes(kept), error);
    for (size_t d = 0; result == OK && d < decisions; d++)
        for (size_t i = 0; i < routing->count; i++)
            memcpy((char *)to + (i * decisions + d) * bytes, by_decision + (d * routing->count + i) * bytes, bytes);
    free(by_decision);
    return result;
}

status routing_end(struct routing *routing, int32_t *chosen, float *gates, struct error *error)
{
    if (routing->choices.data == NULL)
        return OK;
    adapters_keep_choices(routing->experiment->model.adapters, routing->tower, NULL, NULL);
    TRY(chosen != NULL ? by_sample(routing, &routing->choices, chosen, error) : OK);
    return gates != NULL ? by_sample(routing, &routing->gates, gates, error) : OK;
}
