#include "harness/methods/rail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "harness/train/frozen_features.h"
#include "models/clip/cost.h"

static size_t training_images(const struct data *data)
{
    size_t images = 0;
    for (size_t k = 0; k < data->task_count; k++)
        images += dataset_size(data->tasks[k].dataset, SPLIT_TRAIN);
    return images;
}

static struct regression_cost cost_of(const struct method_run *run)
{
    const struct rail *r = run->state;
    return regression_cost(r->regression.form, r->regression.width, r->hidden, training_images(run->data),
                           run->data->class_count, run->data->task_count);
}

static status check_memory(const struct method_run *run, struct error *error)
{
    const struct rail *r = run->state;
    double gigabyte = 1 << 30, needed = cost_of(run).most,
           machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (needed < machine)
        return OK;
    if (r->hidden > 0)
        return error_set(error, ERROR_MEMORY,
                         "method.hidden: %zu random features and %zu classes take %.1f GiB of memory, but this machine "
                         "has %.1f; lower it",
                         r->hidden, run->data->class_count, needed / gigabyte, machine / gigabyte);
    return error_set(error, ERROR_MEMORY,
                     "method.name: the memory of rail_dual grows with the square of the number of training images: "
                     "%.1f GiB for %zu, but this machine has %.1f; use fewer images (data.shots), or rail_primal, "
                     "whose memory does not depend on their number",
                     needed / gigabyte, training_images(run->data), machine / gigabyte);
}

status rail_open(struct method_run *run, size_t hidden, double ridge, double gamma, struct error *error)
{
    const struct model *model = run->model;
    struct rail *r = run->state;
    *r = (struct rail){.hidden = hidden,
                       .regression = {.form = hidden > 0 ? REGRESSION_PRIMAL : REGRESSION_DUAL,
                                      .width = model->clip->dimensions.embed,
                                      .ridge = ridge,
                                      .gamma = gamma}};
    TRY(check_memory(run, error));
    TRY(threads_create(&r->pool, model->settings.threads, error));
    r->regression.pool = r->pool;
    return hidden > 0 ? regression_draw(&r->regression, hidden, model->seed, error) : OK;
}

void rail_close(struct method_run *run)
{
    struct rail *r = run->state;
    regression_free(&r->regression);
    threads_destroy(r->pool);
}

void rail_cost(const struct method_run *run, struct method_cost *cost)
{
    const struct model *model = run->model;
    struct regression_cost regression = cost_of(run);
    *cost = (struct method_cost){.operations = regression.operations +
                                               cost_images(&model->clip->dimensions, training_images(run->data)),
                                 .memory = regression.most,
                                 .kept = regression.kept};
}

/* --- Learning --- */

struct rows {
    float *features, *means; /* [n, embed]; [n, image_width], not used */
    int32_t *labels;
};

static status learn(struct method_run *run, const struct task *task, struct rows *rows, size_t n, struct error *error)
{
    struct model *model = run->model;
    struct rail *r = run->state;
    size_t first = data_first_class(run->data, task);
    TRY(frozen_features(model, run->data, task->dataset, SPLIT_TRAIN, NULL, n, rows->means, rows->features, model->stop,
                        error));
    for (size_t i = 0; i < n; i++)
        rows->labels[i] = (int32_t)first + dataset_label(task->dataset, SPLIT_TRAIN, i);
    TRY(regression_add(&r->regression, rows->features, rows->labels, n, first + dataset_classes(task->dataset), error));
    return regression_solve(&r->regression, error);
}

status rail_end_task(struct method_run *run, const struct task *task, struct error *error)
{
    const struct clip_dimensions *d = &run->model->clip->dimensions;
    size_t n = dataset_size(task->dataset, SPLIT_TRAIN);
    struct rows rows = {.features = xmalloc(array_size(n, d->embed * sizeof(float))),
                        .means = xmalloc(array_size(n, d->image_width * sizeof(float))),
                        .labels = xmalloc(array_size(n, sizeof(int32_t)))};
    status result = learn(run, task, &rows, n, error);
    free(rows.features);
    free(rows.means);
    free(rows.labels);
    return result;
}

status rail_keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    return regression_keep(&((struct rail *)run->state)->regression, serializer, error);
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

static status mix(const struct regression *r, struct adapted *a, double fusion, size_t first, size_t learned,
                  size_t classes, float *scores, struct error *error)
{
    TRY(regression_scores(r, a->features, a->count, a->scores, error));
    for (size_t i = 0; i < a->count; i++) {
        float *row = scores + a->items[i] * classes;
        const double *own = a->scores + i * r->classes + first;
        for (size_t c = 0; c < classes; c++)
            row[c] = (float)((1 - fusion) * (double)row[c] + (c < learned ? fusion * own[c] : 0));
    }
    return OK;
}

status rail_fuse(const struct regression *r, double fusion, size_t first, const float *features, size_t n,
                 size_t classes, float *scores, bool *adapted, struct error *error)
{
    size_t learned = r->classes > first ? r->classes - first : 0;
    learned = learned < classes ? learned : classes;
    struct adapted a = {.items = xmalloc(array_size(n, sizeof *a.items)),
                        .features = xmalloc(array_size(n, r->width * sizeof *a.features)),
                        .scores = xmalloc(array_size(n, (r->classes + 1) * sizeof *a.scores))};
    for (size_t i = 0; i < n; i++) {
        bool is = softmax(scores + i * classes, classes) < learned;
        if (adapted != NULL)
            adapted[i] = is;
        if (!is)
            continue;
        memcpy(a.features + a.count * r->width, features + i * r->width, r->width * sizeof *a.features);
        a.items[a.count++] = i;
    }
    status result = mix(r, &a, fusion, first, learned, classes, scores, error);
    free(a.items);
    free(a.features);
    free(a.scores);
    return result;
}

status rail_scores(struct method_run *run, const struct task *task, const float *features, size_t n, size_t classes,
                   float *scores, struct error *error)
{
    const struct model *model = run->model;
    const struct rail *r = run->state;
    size_t first = model->settings.label_space == LABEL_SPACE_TASK ? data_first_class(run->data, task) : 0;
    return rail_fuse(&r->regression, options_real(run->options, "fusion"), first, features, n, classes, scores, NULL,
                     error);
}
