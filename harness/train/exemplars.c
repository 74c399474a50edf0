#include "harness/train/exemplars.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/train/image_pass.h"

size_t exemplars_share(const struct exemplars *exemplars)
{
    return exemplars->capacity / (exemplars->tasks + 1);
}

struct herding {
    size_t n, width;
    double *rows, *mean, *sum; /* [n, width] normalised; [width]; [width] of the picks so far */
    bool *picked;              /* [n] */
};

static void normalise_rows(struct herding *h, const float *features)
{
    for (size_t i = 0; i < h->n; i++) {
        double length = 0;
        for (size_t j = 0; j < h->width; j++)
            length += (double)features[i * h->width + j] * (double)features[i * h->width + j];
        for (size_t j = 0; j < h->width; j++) {
            double value = length > 0 ? (double)features[i * h->width + j] / sqrt(length) : 0;
            h->rows[i * h->width + j] = value;
            h->mean[j] += value / (double)h->n;
        }
    }
}

/* ‖μ − (f_i + Σ earlier picks' f) / k‖² */
static double distance_with(const struct herding *h, size_t i, size_t k)
{
    double total = 0;
    for (size_t j = 0; j < h->width; j++) {
        double gap = h->mean[j] - (h->rows[i * h->width + j] + h->sum[j]) / (double)k;
        total += gap * gap;
    }
    return total;
}

static void pick(struct herding *h, size_t count, uint32_t *picks, double *distances)
{
    for (size_t k = 0; k < count; k++) {
        double least = DBL_MAX;
        size_t best = 0;
        for (size_t i = 0; i < h->n; i++) {
            double distance = h->picked[i] ? DBL_MAX : distance_with(h, i, k + 1);
            if (distance < least) {
                least = distance;
                best = i;
            }
        }
        h->picked[best] = true;
        picks[k] = (uint32_t)best;
        if (distances != NULL)
            distances[k] = sqrt(least);
        for (size_t j = 0; j < h->width; j++)
            h->sum[j] += h->rows[best * h->width + j];
    }
}

void exemplars_herd(const float *features, size_t n, size_t width, size_t count, uint32_t *picks, double *distances)
{
    struct herding h = {.n = n,
                        .width = width,
                        .rows = xmalloc(array_size(n, width * sizeof(double))),
                        .mean = xcalloc(2 * width, sizeof(double)),
                        .picked = xcalloc(n, sizeof(bool))};
    h.sum = h.mean + width;
    normalise_rows(&h, features);
    pick(&h, count < n ? count : n, picks, distances);
    free(h.picked);
    free(h.mean);
    free(h.rows);
}

void exemplars_add(struct exemplars *e, const uint32_t *picks, size_t count)
{
    size_t share = exemplars_share(e), kept = count < share ? count : share;
    GROW(e->of_task, e->tasks);
    uint32_t *items = xmalloc(array_size(kept + 1, sizeof *items));
    memcpy(items, picks, kept * sizeof *items);
    for (size_t t = 0; t < e->tasks; t++)
        if (e->of_task[t].count > share)
            e->of_task[t].count = share;
    e->of_task[e->tasks].count = kept;
    e->of_task[e->tasks].items = items;
    e->tasks++;
}

size_t exemplars_count(const struct exemplars *e)
{
    size_t total = 0;
    for (size_t t = 0; t < e->tasks; t++)
        total += e->of_task[t].count;
    return total;
}

void exemplars_at(const struct exemplars *e, size_t i, size_t *task, uint32_t *item)
{
    size_t t = 0;
    for (; i >= e->of_task[t].count; t++)
        i -= e->of_task[t].count;
    *task = t;
    *item = e->of_task[t].items[i];
}

/* Allocates lists of these lengths, to restore into. */
static void shrink(struct exemplars *e, size_t tasks, const int32_t *counts)
{
    exemplars_free(e);
    for (; e->tasks < tasks; e->tasks++) {
        size_t count = (size_t)counts[e->tasks];
        GROW(e->of_task, e->tasks);
        e->of_task[e->tasks].count = count;
        e->of_task[e->tasks].items = xmalloc(array_size(count + 1, sizeof *e->of_task->items));
    }
}

status exemplars_keep(struct exemplars *e, const struct serializer *serializer, struct error *error)
{
    int32_t found = (int32_t)e->tasks;
    TRY(serializer_host(serializer, "exemplars.tasks", SAFETENSOR_I32, 1, &found, error));
    if (found < 0)
        return error_set(error, ERROR_FORMAT, "resume file: expected a number of tasks with exemplars, found %d",
                         found);
    if (found == 0) {
        exemplars_free(e);
        return OK;
    }
    size_t tasks = (size_t)found;
    OWNED int32_t *counts = xcalloc(tasks, sizeof *counts);
    for (size_t t = 0; serializer->saving && t < tasks; t++)
        counts[t] = (int32_t)e->of_task[t].count;
    TRY(serializer_host(serializer, "exemplars.counts", SAFETENSOR_I32, tasks, counts, error));
    for (size_t t = 0; t < tasks; t++)
        if (counts[t] < 0)
            return error_set(error, ERROR_FORMAT, "resume file: expected a number of exemplars, found %d", counts[t]);
    if (!serializer->saving)
        shrink(e, tasks, counts);
    for (size_t t = 0; t < tasks; t++) {
        char name[64];
        snprintf(name, sizeof name, "exemplars.%zu", t);
        if (counts[t] > 0)
            TRY(serializer_host(serializer, name, SAFETENSOR_I32, (size_t)counts[t], e->of_task[t].items, error));
    }
    return OK;
}

void exemplars_free(struct exemplars *e)
{
    for (size_t t = 0; t < e->tasks; t++)
        free(e->of_task[t].items);
    free(e->of_task);
    *e = (struct exemplars){.capacity = e->capacity};
}

status exemplars_learn(struct exemplars *exemplars, const struct method_run *run, const struct task *task,
                       struct error *error)
{
    SCOPED(frozen_rows_free) struct frozen_rows rows = {0};
    TRY(frozen_rows_read(&rows, run, task, error));
    size_t share = exemplars_share(exemplars), count = share < rows.n ? share : rows.n;
    OWNED uint32_t *picks = xmalloc(array_size(count + 1, sizeof *picks));
    exemplars_herd(rows.features, rows.n, rows.width, count, picks, NULL);
    exemplars_add(exemplars, picks, count);
    return OK;
}
