#include "harness/heads/trained.h"

static struct parameters *of_adapters(const struct model *model, enum tower tower)
{
    return model->groups & GROUP_ADAPTERS && adapters_in_tower(model->adapters, tower)
               ? model->adapters->towers[tower].parameters
               : NULL;
}

/* Those of both towers are one group, whose flags distinguish them. */
bool trained_group_at(const struct model *model, size_t index, struct trained_group *group)
{
    const struct trained_group all[] = {
        {"image", of_adapters(model, TOWER_IMAGE)},
        {"text", of_adapters(model, TOWER_TEXT)},
        {"clip", model->groups & GROUPS_TOWERS ? model->clip->parameters : NULL},
        {"deltas", model->groups & GROUP_DELTAS ? model->deltas->parameters : NULL},
        {"prefixes", model->groups & GROUP_PREFIXES ? model->prefixes->parameters : NULL},
        {"head", model->groups & GROUP_HEAD ? model->head->parameters(model) : NULL}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].parameters != NULL && index-- == 0) {
            *group = all[i];
            return true;
        }
    return false;
}

static bool is_trained(const struct model *model, const struct parameters *group, size_t flag)
{
    return group != model->clip->parameters || (flag == CLIP_FLAG_IMAGE && model->groups & GROUP_IMAGE_TOWER) ||
           (flag == CLIP_FLAG_TEXT && model->groups & GROUP_TEXT_TOWER);
}

static bool tower_is_trained(const struct model *model, enum tower tower)
{
    return of_adapters(model, tower) != NULL ||
           (model->groups & GROUP_DELTAS && deltas_in_tower(model->deltas, tower)) ||
           (model->groups & GROUP_PREFIXES && prefixes_hooks(model->prefixes, tower) != NULL) ||
           model->groups & (tower == TOWER_IMAGE ? GROUP_IMAGE_TOWER : GROUP_TEXT_TOWER);
}

void trained_encoding(struct model *model, enum tower tower, const int32_t *routers, struct encoding *encoding)
{
    *encoding = (struct encoding){.arena = tower == TOWER_IMAGE ? &model->step_memory : &model->text_memory,
                                  .training = tower_is_trained(model, tower),
                                  .state = model->state,
                                  .dropout = tower == TOWER_IMAGE ? model->dropout : 0};
    if (model->groups & GROUP_PREFIXES)
        encoding->attention = prefixes_hooks(model->prefixes, tower);
    if (of_adapters(model, tower) != NULL)
        encoding->hooks = adapters_hooks(model->adapters, tower);
    if (encoding->attention != NULL || encoding->hooks != NULL)
        encoding->router = routers;
}

size_t trained_values(const struct model *model)
{
    struct trained_group group;
    size_t values = 0;
    for (size_t i = 0; trained_group_at(model, i, &group); i++)
        for (size_t k = 0; k < group.parameters->count; k++) {
            const struct parameter *p = &group.parameters->list[k];
            values += is_trained(model, group.parameters, (size_t)group.parameters->host_flag[p->first_segment])
                          ? p->size
                          : 0;
        }
    return values;
}

status trained_groups_reset(const struct model *model, struct error *error)
{
    struct trained_group group;
    for (size_t i = 0; trained_group_at(model, i, &group); i++)
        TRY(parameters_reset(group.parameters, error));
    return OK;
}
