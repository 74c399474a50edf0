#include "harness/train/services/frozen_classes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/train/frozen_features.h"

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

/* --- Learning --- */

status frozen_rows_read(struct frozen_rows *rows, struct method_run *run, const struct task *task, struct error *error)
{
    struct model *model = run->model;
    const struct clip_dimensions *d = &model->clip->dimensions;
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN), first = data_first_class(run->data, task);
    float *means = xmalloc(array_size(n, d->image_width * sizeof *means)); /* not used */
    *rows = (struct frozen_rows){.n = n,
                                 .width = d->embed,
                                 .first = first,
                                 .classes = first + dataset_classes(task->dataset),
                                 .features = xmalloc(array_size(n, d->embed * sizeof *rows->features)),
                                 .labels = xmalloc(array_size(n, sizeof *rows->labels))};
    for (size_t i = 0; i < n; i++)
        rows->labels[i] = (int32_t)first + dataset_label(task->dataset, SPLIT_TRAIN, i);
    status result = frozen_features(model, run->data, task->dataset, SPLIT_TRAIN, NULL, n, means, rows->features,
                                    model->stop, error);
    free(means);
    return result;
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

/* --- Scores --- */

/* Returns the best column, the first of equal ones. */
static size_t softmax(float *row, size_t n)
{
    size_t best = 0;
    double sum = 0;
    for (size_t c = 1; c < n; c++)
        best = row[c] > row[best] ? c : best;
    double highest = (double)row[best];
    for (size_t c = 0; c < n; c++)
        sum += exp((double)row[c] - highest);
    for (size_t c = 0; c < n; c++)
        row[c] = (float)(exp((double)row[c] - highest) / sum);
    return best;
}

struct adapted {
    size_t count, *items;
    float *features;
    double *scores; /* [count, classes learned] */
};

/* known: the number of columns that are learned */
static status mix(const struct frozen_classes *k, struct adapted *a, size_t first, size_t known, size_t columns,
                  float *scores, struct error *error)
{
    TRY(k->scores(k->context, a->features, a->count, a->scores, error));
    for (size_t i = 0; i < a->count; i++) {
        float *row = scores + a->items[i] * columns;
        const double *own = a->scores + i * k->learned + first;
        for (size_t c = 0; c < columns; c++)
            row[c] = (float)((1 - k->share) * (double)row[c] + k->share * (c < known ? own[c] : k->others));
    }
    return OK;
}

status frozen_classes_fuse(const struct frozen_classes *k, size_t first, const float *features, size_t n,
                           size_t columns, float *scores, bool *adapted, struct error *error)
{
    size_t known = k->learned > first ? k->learned - first : 0;
    known = known < columns ? known : columns;
    struct adapted a = {.items = xmalloc(array_size(n, sizeof *a.items)),
                        .features = xmalloc(array_size(n, k->width * sizeof *a.features)),
                        .scores = xmalloc(array_size(n, (k->learned + 1) * sizeof *a.scores))};
    for (size_t i = 0; i < n; i++) {
        bool is = softmax(scores + i * columns, columns) < known;
        if (adapted != NULL)
            adapted[i] = is;
        if (!is)
            continue;
        memcpy(a.features + a.count * k->width, features + i * k->width, k->width * sizeof *a.features);
        a.items[a.count++] = i;
    }
    status result = mix(k, &a, first, known, columns, scores, error);
    free(a.items);
    free(a.features);
    free(a.scores);
    return result;
}
