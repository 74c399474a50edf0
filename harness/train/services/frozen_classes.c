#include "harness/train/services/frozen_classes.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/train/image_pass.h"

size_t frozen_classes_column(const struct method_run *run, const struct task *task)
{
    return run->model->settings.label_space == LABEL_SPACE_TASK ? data_first_class(run->data, task) : 0;
}

size_t frozen_classes_images(const struct data *data)
{
    size_t images = 0;
    for (size_t k = 0; k < data->task_count; k++)
        images += dataset_size(data->tasks[k].dataset, SPLIT_TRAIN);
    return images;
}

status frozen_rows_read(struct frozen_rows *rows, const struct method_run *run, const struct task *task,
                        struct error *error)
{
    struct model *model = run->model;
    const struct clip_dimensions *d = &model->clip->dimensions;
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN), first = data_first_class(run->data, task);
    *rows = (struct frozen_rows){.n = n,
                                 .width = d->embed,
                                 .first = first,
                                 .classes = first + dataset_classes(task->dataset),
                                 .features = xmalloc(array_size(n, d->embed * sizeof *rows->features)),
                                 .labels = xmalloc(array_size(n, sizeof *rows->labels))};
    for (size_t i = 0; i < n; i++)
        rows->labels[i] = (int32_t)first + dataset_label(task->dataset, SPLIT_TRAIN, i);
    return frozen_features(model, run->data, task->dataset, SPLIT_TRAIN, NULL, n, NULL, rows->features, model->stop,
                           error);
}

void frozen_rows_shuffle(struct frozen_rows *rows, struct rng rng)
{
    size_t bytes = rows->width * sizeof *rows->features;
    uint32_t *order = xmalloc(array_size(rows->n, sizeof *order));
    float *features = xmalloc(array_size(rows->n, bytes));
    int32_t *labels = xmalloc(array_size(rows->n, sizeof *labels));
    rng_permutation(&rng, rows->n, order);
    for (size_t i = 0; i < rows->n; i++) {
        memcpy(features + i * rows->width, rows->features + order[i] * rows->width, bytes);
        labels[i] = rows->labels[order[i]];
    }
    free(order);
    free(rows->features);
    free(rows->labels);
    rows->features = features;
    rows->labels = labels;
}

void frozen_rows_free(struct frozen_rows *rows)
{
    free(rows->features);
    free(rows->labels);
    *rows = (struct frozen_rows){0};
}
