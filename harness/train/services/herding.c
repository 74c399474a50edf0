#include "harness/train/services/herding.h"

#include <stdlib.h>

#include "core/array.h"
#include "harness/selectors/frozen_features.h"

static status add_picks(struct exemplars *exemplars, const float *features, size_t n, size_t width, struct error *error)
{
    size_t share = exemplars_share(exemplars), count = share < n ? share : n;
    uint32_t *picks = malloc(array_size(count + 1, sizeof *picks));
    if (picks == NULL)
        return error_set(error, ERROR_MEMORY, "exemplars: no memory for %zu picks", count);
    status result = exemplars_herd(features, n, width, count, picks, NULL, error);
    if (result == OK)
        result = exemplars_add(exemplars, picks, count, error);
    free(picks);
    return result;
}

status herding_add(struct exemplars *exemplars, struct experiment *e, const struct task *task, struct error *error)
{
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN), embed = e->model.clip->dimensions.embed,
           width = e->model.clip->dimensions.image_width;
    float *features = malloc(array_size(n, embed * sizeof *features)),
          *means = malloc(array_size(n, width * sizeof *means));
    status result = features != NULL && means != NULL
                        ? frozen_features(e, task->dataset, SPLIT_TRAIN, NULL, n, means, features, e->stop, error)
                        : error_set(error, ERROR_MEMORY, "exemplars: no memory for %zu features", n);
    free(means);
    if (result == OK)
        result = add_picks(exemplars, features, n, embed, error);
    free(features);
    return result;
}
