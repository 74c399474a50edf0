#include "harness/evaluate/label_space.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/digest.h"

struct feature_cache *feature_cache_create(struct model *model, const struct data *data)
{
    struct feature_cache *cache = xcalloc(1, sizeof *cache);
    cache->model = model;
    cache->data = data;
    cache->keep = model->settings.keep_features && model->adapters != NULL && !(model->groups & GROUPS_TOWERS);
    if (cache->keep) {
        cache->routers = model->adapters->settings.tasks;
        cache->classes = xcalloc(array_size(data->task_count, cache->routers), sizeof *cache->classes);
        adapter_identity_create(&cache->identity, model->adapters);
    }
    return cache;
}

void feature_cache_destroy(struct feature_cache *cache)
{
    if (cache == NULL)
        return;
    for (size_t i = 0; cache->classes != NULL && i < cache->data->task_count * cache->routers; i++) {
        free(cache->classes[i].chosen);
        free(cache->classes[i].features);
    }
    free(cache->classes);
    adapter_identity_free(&cache->identity);
    free(cache);
}

status feature_cache_refresh(struct feature_cache *cache, struct error *error)
{
    return cache->keep ? adapter_identity_read(&cache->identity, error) : OK;
}

/* --- Images --- */

struct cached_images cached_images_create(const struct feature_cache *cache, size_t n)
{
    const struct adapters *adapters = cache->model->adapters;
    struct cached_images images = {.n = n,
                                   .embed = model_feature_width(cache->model),
                                   .choices = adapters != NULL ? adapters_choices(adapters, TOWER_IMAGE) : 0};
    images.features = xmalloc(array_size(n, images.embed * sizeof *images.features));
    images.chosen = xmalloc(array_size(n, images.choices * sizeof *images.chosen + 1));
    images.gates = xmalloc(array_size(n, images.choices * sizeof *images.gates + 1));
    if (cache->keep) {
        images.router = xmalloc(array_size(n, sizeof *images.router));
        images.identity = xmalloc(array_size(n, sizeof *images.identity));
    }
    for (size_t i = 0; cache->keep && i < n; i++)
        images.router[i] = -1;
    return images;
}

void cached_images_free(struct cached_images *images)
{
    free(images->router);
    free(images->identity);
    free(images->chosen);
    free(images->gates);
    free(images->features);
    *images = (struct cached_images){0};
}

static bool is_cached(const struct feature_cache *cache, const struct cached_images *images, size_t item, int router)
{
    return cache->keep && router >= 0 && images->router[item] == router &&
           images->identity[item] == adapter_identity_of(&cache->identity, TOWER_IMAGE, (size_t)router,
                                                         images->chosen + item * images->choices);
}

size_t feature_cache_missing(struct feature_cache *cache, const struct cached_images *images, const uint32_t *items,
                             size_t n, int router, uint32_t *list)
{
    size_t missing = 0;
    for (size_t i = 0; i < n; i++)
        if (!is_cached(cache, images, items[i], router))
            list[missing++] = items[i];
    cache->images_asked += n;
    return missing;
}

void feature_cache_store(struct feature_cache *cache, struct cached_images *images, size_t item, int router,
                         const int32_t *chosen, const float *gates, const float *features)
{
    memcpy(images->features + item * images->embed, features, images->embed * sizeof *features);
    if (router >= 0) {
        memcpy(images->chosen + item * images->choices, chosen, images->choices * sizeof *chosen);
        memcpy(images->gates + item * images->choices, gates, images->choices * sizeof *gates);
    }
    if (!cache->keep)
        return;
    images->router[item] = (int16_t)router;
    if (router < 0)
        return;
    images->identity[item] = adapter_identity_of(&cache->identity, TOWER_IMAGE, (size_t)router, chosen);
}

/* --- Classes --- */

static uint64_t classes_identity(const struct feature_cache *cache, const struct task *task, int router,
                                 const int32_t *chosen)
{
    const struct model *model = cache->model;
    size_t texts = model->head->encoded(task), choices = adapters_choices(model->adapters, TOWER_TEXT);
    uint64_t digest = 0;
    for (size_t p = 0; p < texts; p++) {
        uint64_t one = adapter_identity_of(&cache->identity, TOWER_TEXT, (size_t)router, chosen + p * choices);
        digest = digest_quick(&one, sizeof one, digest);
    }
    return digest;
}

static status compute_classes(struct feature_cache *cache, struct cached_classes *classes, const struct task *task,
                              int router, struct arena *arena, struct tensor *features, struct error *error)
{
    struct model *model = cache->model;
    size_t choices = adapters_choices(model->adapters, TOWER_TEXT), width = model->head->width(model);
    if (classes->features == NULL) {
        classes->chosen = xmalloc(array_size(model->head->encoded(task), choices * sizeof *classes->chosen + 1));
        classes->features = xmalloc(array_size(dataset_classes(task->dataset), width * sizeof *classes->features));
    }
    status result = model->head->classes(model, task, router, arena, classes->chosen, features, error);
    NEXT(result, model->backend->ops->download(model->backend, classes->features, features->data,
                                               tensor_bytes(features), error));
    if (result != OK) { /* an incomplete set is not usable */
        free(classes->chosen);
        free(classes->features);
        *classes = (struct cached_classes){0};
        return result;
    }
    classes->identity = classes_identity(cache, task, router, classes->chosen);
    return OK;
}

status feature_cache_classes(struct feature_cache *cache, size_t j, int router, struct arena *arena,
                             struct tensor *features, struct error *error)
{
    struct model *model = cache->model;
    const struct task *task = &cache->data->tasks[j];
    if (!cache->keep || router < 0 || model->head->encoded(task) == 0)
        return model->head->classes(model, task, router, arena, NULL, features, error);
    struct cached_classes *classes = &cache->classes[j * cache->routers + (size_t)router];
    if (classes->features == NULL || classes->identity != classes_identity(cache, task, router, classes->chosen))
        return compute_classes(cache, classes, task, router, arena, features, error);
    TRY(tensor_take(features, arena, TENSOR_F32, "class features", 2,
                    (size_t[]){dataset_classes(task->dataset), model->head->width(model)}, error));
    return model->backend->ops->upload(model->backend, features->data, classes->features, tensor_bytes(features),
                                       error);
}

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
