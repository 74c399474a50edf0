#include "harness/heads/trained.h"

bool trained_group_at(const struct experiment *e, size_t index, struct trained_group *group)
{
    static const char *const towers[TOWERS] = {"image", "text"};
    *group = (struct trained_group){0};
    size_t at = 0;
    for (int t = 0; e->model.groups & GROUP_ADAPTERS && t < TOWERS; t++)
        if (adapters_in_tower(e->model.adapters, (enum tower)t) && at++ == index)
            *group = (struct trained_group){towers[t], e->model.adapters->towers[t].parameters};
    if (e->model.groups & GROUPS_TOWERS &&
        at++ == index) /* one group holds both towers' adapters; its flags distinguish them */
        *group = (struct trained_group){"clip", e->model.clip->parameters};
    if (e->model.groups & GROUP_HEAD && at == index)
        *group = (struct trained_group){"head", e->model.head->parameters(e)};
    return group->parameters != NULL;
}

static bool is_trained(const struct experiment *e, const struct parameters *group, size_t flag)
{
    return group != e->model.clip->parameters || (flag == CLIP_FLAG_IMAGE && e->model.groups & GROUP_IMAGE_TOWER) ||
           (flag == CLIP_FLAG_TEXT && e->model.groups & GROUP_TEXT_TOWER);
}

/* Adapters are trained in the towers that have them. */
static bool adapters_are_trained(const struct experiment *e, enum tower tower)
{
    return e->model.groups & GROUP_ADAPTERS && adapters_in_tower(e->model.adapters, tower);
}

static bool tower_is_trained(const struct experiment *e, enum tower tower)
{
    return adapters_are_trained(e, tower) ||
           e->model.groups & (tower == TOWER_IMAGE ? GROUP_IMAGE_TOWER : GROUP_TEXT_TOWER);
}

void trained_encoding(struct experiment *e, enum tower tower, const int32_t *routers, struct encoding *encoding)
{
    *encoding = (struct encoding){.arena = tower == TOWER_IMAGE ? &e->model.step_memory : &e->model.text_memory,
                                  .training = tower_is_trained(e, tower),
                                  .state = e->model.state,
                                  .dropout = tower == TOWER_IMAGE ? e->model.dropout : 0};
    if (!adapters_are_trained(e, tower))
        return;
    encoding->hooks = adapters_hooks(e->model.adapters, tower);
    encoding->router = routers;
}

size_t trained_values(const struct experiment *e)
{
    struct trained_group group;
    size_t values = 0;
    for (size_t i = 0; trained_group_at(e, i, &group); i++)
        for (size_t k = 0; k < group.parameters->count; k++) {
            const struct parameter *p = &group.parameters->list[k];
            values +=
                is_trained(e, group.parameters, (size_t)group.parameters->host_flag[p->first_segment]) ? p->size : 0;
        }
    return values;
}

status trained_groups_reset(const struct experiment *e, struct error *error)
{
    struct trained_group group;
    for (size_t i = 0; trained_group_at(e, i, &group); i++)
        TRY(parameters_reset(group.parameters, error));
    return OK;
}
