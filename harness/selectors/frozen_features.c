#include "harness/selectors/frozen_features.h"

#include "harness/train/batches.h"
#include "harness/train/guard.h"

/* The next batch: means [count, width] and, unless NULL, features [count, embed]. */
static status encode_next(struct experiment *e, struct batches *batches, float *means, float *features, size_t *count,
                          struct error *error)
{
    struct encoding encoding = {.arena = &e->model.step_memory, .whole = true};
    struct batch batch;
    struct tower_pass pass;
    struct tensor output, mean;
    arena_reset(&e->model.step_memory);
    TRY(batches_take(batches, &batch, error));
    *count = batch.count;
    TRY(clip_encode_images(e->model.clip, &encoding, &(struct image_batch){.images = batch.images}, &pass, &output,
                           error));
    TRY(clip_mean_patches(e->model.clip, &e->model.step_memory, &pass, &mean, error));
    batches_advance(batches);
    if (features != NULL)
        TRY(e->model.backend->ops->download(e->model.backend, features, output.data, tensor_bytes(&output), error));
    return e->model.backend->ops->download(e->model.backend, means, mean.data, tensor_bytes(&mean), error);
}

static status encode_all(struct experiment *e, struct batches *batches, const struct loader_settings *settings,
                         size_t n, float *means, float *features, const struct stop *stop, struct error *error)
{
    size_t width = e->model.clip->dimensions.image_width, embed = e->model.clip->dimensions.embed;
    struct guarded_images images = {.dataset = settings->dataset, .split = settings->split, .items = settings->items};
    for (; images.first < n; images.first += images.n) {
        if (stop_requested(stop))
            return error_set(error, ERROR_STOPPED, "stopped while features were computed");
        float *mean = means + images.first * width,
              *feature = features != NULL ? features + images.first * embed : NULL;
        TRY(encode_next(e, batches, mean, feature, &images.n, error));
        images.width = width;
        images.features = mean;
        TRY(guard_images(&images, error));
        images.width = embed;
        images.features = feature;
        TRY(feature != NULL ? guard_images(&images, error) : OK);
    }
    return OK;
}

status frozen_features(struct experiment *e, const struct dataset *dataset, enum split split, const uint32_t *items,
                       size_t n, float *means, float *features, const struct stop *stop, struct error *error)
{
    size_t batch = experiment_evaluation_batch(e);
    struct loader_settings settings = {.dataset = dataset,
                                       .split = split,
                                       .items = items,
                                       .item_count = n,
                                       .resolution = (int)e->model.clip->dimensions.resolution,
                                       .batch = batch,
                                       /* Training images are read once, test images for every row of the accuracy
                                        * matrix. */
                                       .cache = split == SPLIT_TEST ? e->data.cache : NULL};
    struct batches *batches;
    TRY(batches_open(&batches, e, &settings, 0, (n + batch - 1) / batch, error));
    status result = encode_all(e, batches, &settings, n, means, features, stop, error);
    batches_close(batches);
    return result;
}
