#include "harness/model/routed_encoding.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"

static status keep_choices(struct routed_encoding *routed, size_t per_sample, struct error *error)
{
    struct adapters *adapters = routed->model->adapters;
    size_t shape[] = {adapters->towers[routed->tower].decisions, routed->count, per_sample};
    TRY(tensor_take(&routed->choices, &routed->model->step_memory, TENSOR_I32, "chosen experts", 3, shape, error));
    TRY(tensor_take(&routed->gates, &routed->model->step_memory, TENSOR_F32, "gates", 3, shape, error));
    adapters_keep_choices(adapters, routed->tower, routed->choices.data, routed->gates.data);
    return OK;
}

status routed_encoding_begin(struct routed_encoding *routed, struct model *model, enum tower tower, size_t count,
                             int router, struct encoding *encoding, struct error *error)
{
    *routed = (struct routed_encoding){.model = model, .tower = tower, .count = count};
    *encoding = (struct encoding){.arena = &model->step_memory, .state = model->state};
    if (router >= 0 && model->prefixes != NULL) {
        model->prefixes->tested = router;
        encoding->attention = prefixes_hooks(model->prefixes, tower);
        return model_fill(model, &model->step_memory, count, router, &encoding->router, error);
    }
    if (router < 0 || model->adapters == NULL || !adapters_in_tower(model->adapters, tower))
        return OK;
    routed->routed = true;
    if (adapters_choices(model->adapters, tower) > 0)
        TRY(keep_choices(routed, model->adapters->settings.top_k, error));
    TRY(model_fill(model, &model->step_memory, count, router, &encoding->router, error));
    encoding->hooks = adapters_hooks(model->adapters, tower);
    return OK;
}

status routed_encoding_weigh(struct routed_encoding *routed, const float *weights, struct error *error)
{
    struct model *model = routed->model;
    struct tensor memory;
    if (model->prefixes == NULL)
        return OK;
    TRY(tensor_take(&memory, &model->step_memory, TENSOR_F32, "weights of prefixes", 1, &routed->count, error));
    model->prefixes->towers[routed->tower].weights = memory.data;
    routed->weighs = true;
    return model->backend->ops->upload(model->backend, memory.data, weights, tensor_bytes(&memory), error);
}

status routed_encoding_keep_tokens(struct routed_encoding *routed, size_t positions, struct error *error)
{
    return routed->routed ? keep_choices(routed, positions * routed->model->adapters->settings.top_k, error) : OK;
}

void routed_encoding_end(struct routed_encoding *routed)
{
    if (routed->choices.data != NULL)
        adapters_keep_choices(routed->model->adapters, routed->tower, NULL, NULL);
    if (routed->model->prefixes != NULL)
        routed->model->prefixes->tested = -1;
    if (routed->weighs)
        routed->model->prefixes->towers[routed->tower].weights = NULL;
}

void routed_encoding_by_sample(const void *by_decision, size_t decisions, size_t count, size_t bytes, void *by_sample)
{
    for (size_t d = 0; d < decisions; d++)
        for (size_t i = 0; i < count; i++)
            memcpy((char *)by_sample + (i * decisions + d) * bytes, (const char *)by_decision + (d * count + i) * bytes,
                   bytes);
}

status routed_encoding_chosen(const struct routed_encoding *routed, int32_t *chosen, struct error *error)
{
    const struct tensor *kept = &routed->choices;
    struct backend *backend = routed->model->backend;
    if (kept->data == NULL)
        return OK;
    OWNED char *by_decision = xmalloc(tensor_bytes(kept));
    TRY(backend->ops->download(backend, by_decision, kept->data, tensor_bytes(kept), error));
    routed_encoding_by_sample(by_decision, kept->shape[0], kept->shape[1], kept->shape[2] * sizeof *chosen, chosen);
    return OK;
}
