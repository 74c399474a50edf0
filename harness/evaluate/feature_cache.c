#include "harness/evaluate/known.h"

#include <stdlib.h>
#include <string.h>

#include "core/digest.h"
#include "harness/evaluate/class_features.h"

status known_create(struct known **result, struct experiment *e, struct error *error)
{
    struct known *known = calloc(1, sizeof *known);
    if (known == NULL)
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for what is known");
    known->experiment = e;
    known->keep = e->settings.keep_features && e->adapters != NULL;
    status made = OK;
    if (known->keep) {
        known->routers = e->adapters->settings.tasks;
        known->classes = calloc(array_size(e->task_count, known->routers), sizeof *known->classes);
        if (known->classes == NULL)
            made = error_set(error, ERROR_MEMORY, "evaluation: no memory for %zu tasks", e->task_count);
        if (made == OK)
            made = adapter_identity_create(&known->identity, e->adapters, error);
    }
    if (made != OK) {
        known_destroy(known);
        return made;
    }
    *result = known;
    return OK;
}

void known_destroy(struct known *known)
{
    if (known == NULL)
        return;
    for (size_t i = 0; known->classes != NULL && i < known->experiment->task_count * known->routers; i++) {
        free(known->classes[i].chosen);
        free(known->classes[i].features);
    }
    free(known->classes);
    adapter_identity_free(&known->identity);
    free(known);
}

status known_refresh(struct known *known, struct error *error)
{
    return known->keep ? adapter_identity_read(&known->identity, error) : OK;
}

/* --- Images --- */

status known_images_create(struct known_images *images, const struct known *known, size_t n, struct error *error)
{
    const struct clip_dimensions *d = &known->experiment->clip->dimensions;
    *images = (struct known_images){.n = n, .embed = d->embed};
    images->features = malloc(array_size(n, d->embed * sizeof *images->features));
    bool made = images->features != NULL;
    if (made && known->keep) {
        images->choices = d->image_blocks * known->experiment->adapters->settings.top_k;
        images->router = malloc(array_size(n, sizeof *images->router));
        images->identity = malloc(array_size(n, sizeof *images->identity));
        images->chosen = malloc(array_size(n, images->choices * sizeof *images->chosen));
        made = images->router != NULL && images->identity != NULL && images->chosen != NULL;
    }
    if (!made) {
        known_images_free(images);
        return error_set(error, ERROR_MEMORY, "evaluation: no memory for the features of %zu images", n);
    }
    for (size_t i = 0; images->router != NULL && i < n; i++)
        images->router[i] = -1;
    return OK;
}

void known_images_free(struct known_images *images)
{
    free(images->router);
    free(images->identity);
    free(images->chosen);
    free(images->features);
    *images = (struct known_images){0};
}

static bool is_known(const struct known *known, const struct known_images *images, size_t item, int router)
{
    return known->keep && router >= 0 && images->router[item] == router &&
           images->identity[item] == adapter_identity_of(&known->identity, TOWER_IMAGE, (size_t)router,
                                                         images->chosen + item * images->choices);
}

size_t known_missing(struct known *known, const struct known_images *images, const uint32_t *items, size_t n,
                     int router, uint32_t *list)
{
    size_t missing = 0;
    for (size_t i = 0; i < n; i++)
        if (!is_known(known, images, items[i], router))
            list[missing++] = items[i];
    known->images_asked += n;
    known->images_encoded += missing;
    return missing;
}

void known_store(struct known *known, struct known_images *images, size_t item, int router, const int32_t *chosen,
                 const float *features)
{
    memcpy(images->features + item * images->embed, features, images->embed * sizeof *features);
    if (!known->keep)
        return;
    images->router[item] = (int16_t)router;
    if (router < 0)
        return;
    memcpy(images->chosen + item * images->choices, chosen, images->choices * sizeof *chosen);
    images->identity[item] = adapter_identity_of(&known->identity, TOWER_IMAGE, (size_t)router, chosen);
}

/* --- Classes --- */

static uint64_t classes_identity(const struct known *known, const struct task *task, int router, const int32_t *chosen)
{
    size_t prompts = class_prompts(task),
           choices = known->experiment->clip->dimensions.text_blocks * known->experiment->adapters->settings.top_k;
    uint64_t digest = 0;
    for (size_t p = 0; p < prompts; p++) {
        uint64_t one = adapter_identity_of(&known->identity, TOWER_TEXT, (size_t)router, chosen + p * choices);
        digest = digest_quick(&one, sizeof one, digest);
    }
    return digest;
}

static status take_classes(const struct known *known, struct known_classes *classes, const struct task *task,
                           struct error *error)
{
    const struct clip_dimensions *d = &known->experiment->clip->dimensions;
    size_t choices = d->text_blocks * known->experiment->adapters->settings.top_k;
    classes->chosen = malloc(array_size(class_prompts(task), choices * sizeof *classes->chosen));
    classes->features = malloc(array_size(dataset_classes(task->dataset), d->embed * sizeof *classes->features));
    if (classes->chosen != NULL && classes->features != NULL)
        return OK;
    free(classes->chosen);
    free(classes->features);
    *classes = (struct known_classes){0};
    return error_set(error, ERROR_MEMORY, "evaluation: no memory for the class features of %s", task->settings.name);
}

static status compute_classes(struct known *known, struct known_classes *classes, const struct task *task, int router,
                              struct arena *arena, struct tensor *features, struct error *error)
{
    struct experiment *e = known->experiment;
    status result = OK;
    if (classes->features == NULL)
        TRY(take_classes(known, classes, task, error));
    result = class_features(e, task, router, arena, classes->chosen, features, error);
    if (result == OK)
        result =
            e->backend->ops->download(e->backend, classes->features, features->data, tensor_bytes(features), error);
    if (result != OK) { /* half of them are none */
        free(classes->chosen);
        free(classes->features);
        *classes = (struct known_classes){0};
        return result;
    }
    classes->identity = classes_identity(known, task, router, classes->chosen);
    return OK;
}

status known_classes(struct known *known, size_t j, int router, struct arena *arena, struct tensor *features,
                     struct error *error)
{
    struct experiment *e = known->experiment;
    const struct task *task = &e->tasks[j];
    if (!known->keep || router < 0)
        return class_features(e, task, router, arena, NULL, features, error);
    struct known_classes *classes = &known->classes[j * known->routers + (size_t)router];
    if (classes->features == NULL || classes->identity != classes_identity(known, task, router, classes->chosen))
        return compute_classes(known, classes, task, router, arena, features, error);
    TRY(tensor_take(features, arena, TENSOR_F32, "class features", 2,
                    (size_t[]){dataset_classes(task->dataset), e->clip->dimensions.embed}, error));
    return e->backend->ops->upload(e->backend, features->data, classes->features, tensor_bytes(features), error);
}
