#include "harness/heads/routing.h"
#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

static status keep_choices(struct routing *routing, size_t per_sample, struct error *error)
{
    struct adapters *adapters = routing->model->adapters;
    size_t shape[] = {adapters->towers[routing->tower].decisions, routing->count, per_sample};
    TRY(tensor_take(&routing->choices, &routing->model->step_memory, TENSOR_I32, "chosen experts", 3, shape, error));
    TRY(tensor_take(&routing->gates, &routing->model->step_memory, TENSOR_F32, "gates", 3, shape, error));
    adapters_keep_choices(adapters, routing->tower, routing->choices.data, routing->gates.data);
    return OK;
}

status routing_begin(struct routing *routing, struct model *model, enum tower tower, size_t count, int router,
                     struct encoding *encoding, struct error *error)
{
    *routing = (struct routing){.model = model, .tower = tower, .count = count};
    *encoding = (struct encoding){.arena = &model->step_memory, .state = model->state};
    if (router >= 0 && model->prefixes != NULL) {
        encoding->attention = prefixes_hooks(model->prefixes, tower);
        return model_fill(model, &model->step_memory, count, router, &encoding->router, error);
    }
    if (router < 0 || model->adapters == NULL || !adapters_in_tower(model->adapters, tower))
        return OK;
    routing->routed = true;
    if (adapters_choices(model->adapters, tower) > 0)
        TRY(keep_choices(routing, model->adapters->settings.top_k, error));
    TRY(model_fill(model, &model->step_memory, count, router, &encoding->router, error));
    encoding->hooks = adapters_hooks(model->adapters, tower);
    return OK;
}

status routing_weigh(struct routing *routing, const float *weights, struct error *error)
{
    struct model *model = routing->model;
    struct tensor memory;
    if (model->prefixes == NULL)
        return OK;
    TRY(tensor_take(&memory, &model->step_memory, TENSOR_F32, "weights of prefixes", 1, &routing->count, error));
    model->prefixes->towers[routing->tower].weights = memory.data;
    routing->weighs = true;
    return model->backend->ops->upload(model->backend, memory.data, weights, tensor_bytes(&memory), error);
}

status routing_see_tokens(struct routing *routing, size_t positions, struct error *error)
{
    return routing->routed ? keep_choices(routing, positions * routing->model->adapters->settings.top_k, error) : OK;
}

void routing_end(struct routing *routing)
{
    if (routing->choices.data != NULL)
        adapters_keep_choices(routing->model->adapters, routing->tower, NULL, NULL);
    if (routing->weighs)
        routing->model->prefixes->towers[routing->tower].weights = NULL;
}

void routing_by_sample(const void *by_decision, size_t decisions, size_t count, size_t bytes, void *by_sample)
{
    for (size_t d = 0; d < decisions; d++)
        for (size_t i = 0; i < count; i++)
            memcpy((char *)by_sample + (i * decisions + d) * bytes, (const char *)by_decision + (d * count + i) * bytes,
                   bytes);
}

status routing_chosen(const struct routing *routing, int32_t *chosen, struct error *error)
{
    const struct tensor *kept = &routing->choices;
    struct backend *backend = routing->model->backend;
    if (kept->data == NULL)
        return OK;
    char *by_decision = xmalloc(tensor_bytes(kept));
    status result = backend->ops->download(backend, by_decision, kept->data, tensor_bytes(kept), error);
    if (result == OK)
        routing_by_sample(by_decision, kept->shape[0], kept->shape[1], kept->shape[2] * sizeof *chosen, chosen);
    free(by_decision);
    return result;
}
