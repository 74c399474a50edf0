#include "harness/evaluate/label_space.h"

#include <stdlib.h>

/* Task by task into the rows of one tensor. */
static status join(struct label_space *space, int router, struct arena *arena, const struct tensor *joint,
                   struct error *error)
{
    struct experiment *e = space->cache->experiment;
    size_t embed = e->model.clip->dimensions.embed;
    for (size_t t = 0; t < e->data.task_count; t++) {
        struct arena_mark mark = arena_mark(arena);
        struct tensor classes;
        TRY(feature_cache_classes(space->cache, t, router, arena, &classes, error));
        TRY(e->model.backend->ops->copy(e->model.backend, (float *)joint->data + e->data.tasks[t].first_class * embed,
                                        classes.data, tensor_bytes(&classes), error));
        arena_release(arena, mark);
    }
    return OK;
}

/* Without adapters the features are the same for all tasks until the weights change. The copy only saves time. */
static status keep(struct label_space *space, const struct tensor *joint, struct error *error)
{
    const struct experiment *e = space->cache->experiment;
    space->joint = malloc(tensor_bytes(joint));
    if (space->joint == NULL)
        return OK;
    status result =
        e->model.backend->ops->download(e->model.backend, space->joint, joint->data, tensor_bytes(joint), error);
    if (result != OK)
        label_space_refresh(space);
    return result;
}

status label_space_all(struct label_space *space, int router, struct arena *arena, struct tensor *features,
                       struct error *error)
{
    struct experiment *e = space->cache->experiment;
    TRY(tensor_take(features, arena, TENSOR_F32, "class features of all tasks", 2,
                    (size_t[]){e->data.class_count, e->model.clip->dimensions.embed}, error));
    if (router < 0 && space->joint != NULL)
        return e->model.backend->ops->upload(e->model.backend, features->data, space->joint, tensor_bytes(features),
                                             error);
    TRY(join(space, router, arena, features, error));
    return router < 0 ? keep(space, features, error) : OK;
}

status label_space_features(struct label_space *space, size_t j, int router, struct arena *arena,
                            struct tensor *features, struct error *error)
{
    if (space->cache->experiment->settings.label_space == LABEL_SPACE_TASK)
        return feature_cache_classes(space->cache, j, router, arena, features, error);
    return label_space_all(space, router, arena, features, error);
}

void label_space_refresh(struct label_space *space)
{
    free(space->joint);
    space->joint = NULL;
}

void label_space_free(struct label_space *space)
{
    label_space_refresh(space);
}
