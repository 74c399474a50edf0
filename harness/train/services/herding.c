#include "harness/train/services/herding.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/array.h"
#include "harness/train/frozen_features.h"

static void add_picks(struct exemplars *exemplars, const float *features, size_t n, size_t width)
{
    size_t share = exemplars_share(exemplars), count = share < n ? share : n;
    uint32_t *picks = xmalloc(array_size(count + 1, sizeof *picks));
    exemplars_herd(features, n, width, count, picks, NULL);
    exemplars_add(exemplars, picks, count);
    free(picks);
}

status herding_add(struct exemplars *exemplars, const struct method_run *run, const struct task *task,
                   struct error *error)
{
    struct model *model = run->model;
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN), embed = model->clip->dimensions.embed,
           width = model->clip->dimensions.image_width;
    float *features = xmalloc(array_size(n, embed * sizeof *features)),
          *means = xmalloc(array_size(n, width * sizeof *means));
    status result =
        frozen_features(model, run->data, task->dataset, SPLIT_TRAIN, NULL, n, means, features, model->stop, error);
    free(means);
    if (result == OK)
        add_picks(exemplars, features, n, embed);
    free(features);
    return result;
}
