#include "harness/evaluate/label_space.h"

#include <stdlib.h>

/* Copies class features, task by task, into the rows of one tensor. */
static status join(struct label_space *space, size_t tasks, int router, struct arena *arena, const struct tensor *joint,
                   struct error *error)
{
    struct model *model = space->cache->model;
    const struct data *data = space->cache->data;
    size_t width = model->head->width(model);
    for (size_t t = 0; t < tasks; t++) {
        struct arena_mark mark = arena_mark(arena);
        struct tensor classes;
        TRY(feature_cache_classes(space->cache, t, router, arena, &classes, error));
        TRY(model->backend->ops->copy(model->backend, (float *)joint->data + data->tasks[t].first_class * width,
                                      classes.data, tensor_bytes(&classes), error));
        arena_release(arena, mark);
    }
    return OK;
}

/* Without adapters the features are the same for all tasks until the weights change. The copy only saves time. */
static status keep(struct label_space *space, size_t tasks, const struct tensor *joint, struct error *error)
{
    const struct model *model = space->cache->model;
    label_space_refresh(space);
    space->joint = malloc(tensor_bytes(joint));
    if (space->joint == NULL)
        return OK;
    space->joint_tasks = tasks;
    status result =
        model->backend->ops->download(model->backend, space->joint, joint->data, tensor_bytes(joint), error);
    if (result != OK)
        label_space_refresh(space);
    return result;
}

/* Class features of the first tasks: [their classes, embed]. */
static status features_of(struct label_space *space, size_t tasks, int router, struct arena *arena,
                          struct tensor *features, struct error *error)
{
    struct model *model = space->cache->model;
    const struct data *data = space->cache->data;
    size_t classes = tasks < data->task_count ? data->tasks[tasks].first_class : data->class_count;
    TRY(tensor_take(features, arena, TENSOR_F32, "class features of several tasks", 2,
                    (size_t[]){classes, model->head->width(model)}, error));
    if (router < 0 && tasks <= space->joint_tasks)
        return model->backend->ops->upload(model->backend, features->data, space->joint, tensor_bytes(features), error);
    TRY(join(space, tasks, router, arena, features, error));
    return router < 0 ? keep(space, tasks, features, error) : OK;
}

status label_space_all(struct label_space *space, int router, struct arena *arena, struct tensor *features,
                       struct error *error)
{
    return features_of(space, space->cache->data->task_count, router, arena, features, error);
}

bool label_space_grows(enum label_space_kind kind)
{
    return kind == LABEL_SPACE_SEEN || kind == LABEL_SPACE_OPEN;
}

struct class_range label_space_range(const struct label_space *space, size_t j, size_t rows)
{
    const struct task *task = &space->cache->data->tasks[j];
    if (space->cache->model->settings.label_space != LABEL_SPACE_OPEN || j < space->seen)
        return (struct class_range){0, rows};
    return (struct class_range){task->first_class, dataset_classes(task->dataset)};
}

status label_space_features(struct label_space *space, size_t j, int router, struct arena *arena,
                            struct tensor *features, struct error *error)
{
    enum label_space_kind kind = space->cache->model->settings.label_space;
    if (kind == LABEL_SPACE_TASK)
        return feature_cache_classes(space->cache, j, router, arena, features, error);
    if (kind == LABEL_SPACE_ALL)
        return label_space_all(space, router, arena, features, error);
    /* of a task yet to come: up to its own, so that methods find each class in the same row as ever */
    size_t tasks = kind == LABEL_SPACE_OPEN && j >= space->seen ? j + 1 : space->seen;
    return features_of(space, tasks, router, arena, features, error);
}

void label_space_refresh(struct label_space *space)
{
    free(space->joint);
    space->joint = NULL;
    space->joint_tasks = 0;
}

void label_space_free(struct label_space *space)
{
    label_space_refresh(space);
}
