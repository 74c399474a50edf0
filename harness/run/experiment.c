#include "harness/run/experiment.h"

#include "harness/heads/weights.h"

status experiment_choose_groups(struct experiment *e, unsigned groups, struct error *error)
{
    e->model.groups = groups;
    const int32_t flags[CLIP_FLAGS] = {[CLIP_FLAG_IMAGE] = (e->model.groups & GROUP_IMAGE_TOWER) != 0,
                                       [CLIP_FLAG_TEXT] = (e->model.groups & GROUP_TEXT_TOWER) != 0};
    struct parameters *group = e->model.clip->parameters; /* a model without texts has the first flag alone */
    return e->model.backend->ops->upload(e->model.backend, group->flags, flags, group->flags_count * sizeof *flags,
                                         error);
}

size_t experiment_evaluation_batch(const struct experiment *e)
{
    return e->evaluation_batch;
}

status experiment_set_step(struct experiment *e, size_t task, size_t step, double rate, struct error *error)
{
    struct step_state state = {
        .seed = e->seed, .task = (uint32_t)task, .step = (uint32_t)step, .learning_rate = (float)rate};
    return e->model.backend->ops->upload(e->model.backend, e->model.state, &state, sizeof state, error);
}

status experiment_fill(struct experiment *e, struct arena *arena, size_t n, int32_t value, const int32_t **filled,
                       struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, arena, TENSOR_I32, "numbers", 1, &n, error));
    *filled = memory.data;
    return e->model.backend->ops->arange(e->model.backend,
                                         &(struct arange){.count = n, .first = value, .out = memory.data}, error);
}

size_t experiment_feature_width(const struct experiment *e)
{
    const struct clip_dimensions *n = &e->model.clip->dimensions;
    return n->embed > 0 ? n->embed : n->image_width; /* a model without texts has no projection */
}

char *experiment_model_name(const struct experiment *e)
{
    return weights_name(e->settings.weights);
}
