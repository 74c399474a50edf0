#include "harness/evaluate/routing.h"

#include <stdlib.h>
#include <string.h>

static status keep_choices(struct routing *routing, size_t per_sample, struct error *error)
{
    struct adapters *adapters = routing->experiment->model.adapters;
    size_t shape[] = {adapters->towers[routing->tower].decisions, routing->count, per_sample};
    TRY(tensor_take(&routing->choices, &routing->experiment->model.step_memory, TENSOR_I32, "chosen experts", 3, shape,
                    error));
    adapters_keep_choices(adapters, routing->tower, routing->choices.data);
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

status routing_end(struct routing *routing, int32_t *chosen, struct error *error)
{
    struct experiment *e = routing->experiment;
    if (routing->choices.data == NULL)
        return OK;
    adapters_keep_choices(e->model.adapters, routing->tower, NULL);
    if (chosen == NULL)
        return OK;
    size_t decisions = routing->choices.shape[0], choices = routing->choices.shape[2];
    int32_t *by_decision = malloc(tensor_bytes(&routing->choices));
    if (by_decision == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for the experts of %zu samples", routing->count);
    status result = e->model.backend->ops->download(e->model.backend, by_decision, routing->choices.data,
                                                    tensor_bytes(&routing->choices), error);
    for (size_t d = 0; result == OK && d < decisions; d++)
        for (size_t i = 0; i < routing->count; i++)
            memcpy(chosen + (i * decisions + d) * choices, by_decision + (d * routing->count + i) * choices,
                   choices * sizeof *chosen);
    free(by_decision);
    return result;
}
