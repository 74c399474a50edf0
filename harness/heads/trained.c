#include "harness/heads/trained.h"

static struct parameters *of_adapters(const struct model *model, enum tower tower)
{
    return adapters_in_tower(model->adapters, tower) ? model->adapters->towers[tower].parameters : NULL;
}

static struct parameters *of_image_adapters(const struct model *model)
{
    return of_adapters(model, TOWER_IMAGE);
}

static struct parameters *of_text_adapters(const struct model *model)
{
    return of_adapters(model, TOWER_TEXT);
}

static struct parameters *of_towers(const struct model *model)
{
    return model->clip->parameters; /* of both towers; its flags distinguish them */
}

static struct parameters *of_deltas(const struct model *model)
{
    return model->deltas->parameters;
}

static struct parameters *of_prefixes(const struct model *model)
{
    return model->prefixes->parameters;
}

static struct parameters *of_head(const struct model *model)
{
    return model->head->parameters(model);
}

static const struct {
    unsigned groups; /* a set of enum parameter_group, one of which suffices */
    const char *name;
    struct parameters *(*parameters)(const struct model *model); /* NULL: this model has none */
} table[] = {{GROUP_ADAPTERS, "image", of_image_adapters}, {GROUP_ADAPTERS, "text", of_text_adapters},
             {GROUPS_TOWERS, "clip", of_towers},           {GROUP_DELTAS, "deltas", of_deltas},
             {GROUP_PREFIXES, "prefixes", of_prefixes},    {GROUP_HEAD, "head", of_head}};

bool trained_group_at(const struct model *model, size_t index, struct trained_group *group)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        *group =
            (struct trained_group){table[i].name, model->groups & table[i].groups ? table[i].parameters(model) : NULL};
        if (group->parameters != NULL && index-- == 0)
            return true;
    }
    return false;
}

static bool is_trained(const struct model *model, const struct parameters *group, size_t flag)
{
    return group != model->clip->parameters || (flag == CLIP_FLAG_IMAGE && model->groups & GROUP_IMAGE_TOWER) ||
           (flag == CLIP_FLAG_TEXT && model->groups & GROUP_TEXT_TOWER);
}

/* Adapters are trained in the towers that have them. */
static bool adapters_are_trained(const struct model *model, enum tower tower)
{
    return model->groups & GROUP_ADAPTERS && adapters_in_tower(model->adapters, tower);
}

static bool tower_is_trained(const struct model *model, enum tower tower)
{
    return adapters_are_trained(model, tower) ||
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
    if (adapters_are_trained(model, tower))
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
