#include "harness/evaluate/routing.h"

#include <stdlib.h>
#include <string.h>

status routing_begin(struct routing *routing, struct experiment *e, enum tower tower, size_t count, int router,
                     struct encoding *encoding, struct error *error)
{
    *routing = (struct routing){.experiment = e, .tower = tower, .count = count};
    *encoding = (struct encoding){.arena = &e->model.step_memory, .state = e->model.state};
    if (router < 0 || !adapters_in_tower(e->model.adapters, tower))
        return OK;
    size_t shape[] = {e->model.adapters->towers[tower].blocks, count, e->model.adapters->settings.top_k};
    if (adapters_choices(e->model.adapters, tower) > 0) {
        TRY(tensor_take(&routing->choices, &e->model.step_memory, TENSOR_I32, "chosen experts", 3, shape, error));
        adapters_keep_choices(e->model.adapters, tower, routing->choices.data);
    }
    TRY(experiment_fill(e, &e->model.step_memory, count, router, &encoding->router, error));
    encoding->hooks = adapters_hooks(e->model.adapters, tower);
    return OK;
}

status routing_end(struct routing *routing, int32_t *chosen, struct error *error)
{
    struct experiment *e = routing->experiment;
    if (routing->choices.data == NULL)
        return OK;
    adapters_keep_choices(e->model.adapters, routing->tower, NULL);
    if (chosen == NULL)
        return OK;
    size_t blocks = routing->choices.shape[0], top_k = routing->choices.shape[2];
    int32_t *by_block = malloc(tensor_bytes(&routing->choices));
    if (by_block == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for the experts of %zu samples", routing->count);
    status result = e->model.backend->ops->download(e->model.backend, by_block, routing->choices.data,
                                                    tensor_bytes(&routing->choices), error);
    for (size_t b = 0; result == OK && b < blocks; b++)
        for (size_t i = 0; i < routing->count; i++)
            memcpy(chosen + (i * blocks + b) * top_k, by_block + (b * routing->count + i) * top_k,
                   top_k * sizeof *chosen);
    free(by_block);
    return result;
}
