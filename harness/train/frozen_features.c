#include "harness/train/frozen_features.h"

#include <string.h>

#include "harness/train/guard.h"
#include "harness/train/image_pass.h"

struct frozen {
    struct model *model;
    const struct loader_settings *images;
    float *means, *features; /* [n, width] and [n, embed], each unless NULL */
};

static status encode(void *context, const struct batch *batch, struct image_results *results, struct error *error)
{
    const struct frozen *frozen = context;
    struct model *model = frozen->model;
    struct encoding encoding = {.arena = &model->step_memory, .whole = true};
    struct tower_pass pass;
    struct tensor output, mean;
    TRY(clip_encode_images(model->clip, &encoding, &batch->images, &pass, &output, error));
    TRY(clip_mean_patches(model->clip, &model->step_memory, &pass, &mean, error));
    results->list[results->count++] = mean;
    if (frozen->features != NULL)
        results->list[results->count++] = output;
    return OK;
}

static status keep(void *context, size_t first, size_t count, const void *results, struct error *error)
{
    const struct frozen *frozen = context;
    size_t width = frozen->model->clip->dimensions.image_width, embed = frozen->model->clip->dimensions.embed;
    const float *means = results, *features = means + count * width;
    struct guarded_images images = {.dataset = frozen->images->dataset,
                                    .split = frozen->images->split,
                                    .items = frozen->images->items,
                                    .first = first,
                                    .n = count,
                                    .width = width,
                                    .features = means};
    TRY(guard_images(&images, error));
    if (frozen->means != NULL)
        memcpy(frozen->means + first * width, means, count * width * sizeof *means);
    if (frozen->features == NULL)
        return OK;
    images.width = embed;
    images.features = features;
    TRY(guard_images(&images, error));
    memcpy(frozen->features + first * embed, features, count * embed * sizeof *features);
    return OK;
}

status frozen_features(struct model *model, const struct data *data, const struct dataset *dataset, enum split split,
                       const uint32_t *items, size_t n, float *means, float *features, const struct stop *stop,
                       struct error *error)
{
    struct loader_settings settings = {.dataset = dataset,
                                       .split = split,
                                       .items = items,
                                       .item_count = n,
                                       .resolution = (int)model->clip->dimensions.resolution,
                                       .squash = clip_squashes(&model->clip->dimensions),
                                       .batch = model->evaluation_batch,
                                       /* Training images are read once, test images for every row of the accuracy
                                        * matrix. */
                                       .cache = split == SPLIT_TEST ? data->cache : NULL};
    const struct clip_dimensions *d = &model->clip->dimensions;
    struct frozen frozen = {.model = model, .images = &settings, .means = means, .features = features};
    return image_pass_run(&(struct image_pass){.model = model,
                                               .data = data,
                                               .images = &settings,
                                               .count = n,
                                               .bytes = (d->image_width + d->embed) * sizeof *means,
                                               .name = dataset_name(dataset),
                                               .stop = stop,
                                               .encode = encode,
                                               .keep = keep,
                                               .context = &frozen},
                          error);
}
