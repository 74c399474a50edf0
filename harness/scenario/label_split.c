#include "harness/scenario/label_split.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/text.h"
#include "harness/scenario/orders.h"
#include "harness/scenario/partition.h"

enum { UNITS = 1 << 16 }; /* resolution of a cosine, so that last bits, which differ between machines, rarely matter */

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* cosines [classes, classes] in units */
static void measure(size_t classes, const float *features, size_t embed, int32_t *cosines)
{
    for (size_t i = 0; i < classes; i++)
        for (size_t j = 0; j <= i; j++)
            cosines[i * classes + j] = cosines[j * classes + i] =
                (int32_t)lrint(UNITS * dot(features + i * embed, features + j * embed, embed));
}

/* Sums over pairs of classes, and how many there are: [tasks, tasks] each. */
static void add_pairs(const struct label_split *split, const int32_t *cosines, double *sums, size_t *pairs)
{
    for (size_t i = 0; i < split->classes; i++)
        for (size_t j = 0; j < split->classes; j++) {
            if (i == j)
                continue;
            size_t cell = split->task_of[i] * split->tasks + split->task_of[j];
            sums[cell] += (double)cosines[i * split->classes + j] / UNITS;
            pairs[cell]++;
        }
}

static void average(struct label_split *split, const int32_t *cosines)
{
    size_t tasks = split->tasks, *pairs = xcalloc(tasks * tasks, sizeof *pairs), count[2] = {0};
    double sum[2] = {0};
    add_pairs(split, cosines, split->cosines, pairs);
    for (size_t i = 0; i < tasks * tasks; i++) {
        bool same = i / tasks == i % tasks;
        sum[same] += split->cosines[i];
        count[same] += pairs[i];
        split->cosines[i] = pairs[i] > 0 ? split->cosines[i] / (double)pairs[i] : NAN;
    }
    split->within = count[true] > 0 ? sum[true] / (double)count[true] : NAN;
    split->between = count[false] > 0 ? sum[false] / (double)count[false] : NAN;
    free(pairs);
}

status label_split_check(const struct task *whole, size_t tasks, struct error *error)
{
    size_t classes = dataset_classes(whole->dataset);
    if (classes < tasks)
        return error_set(error, ERROR_ARGUMENT,
                         "data.parts: %s has %zu classes, which cannot be cut into %zu tasks; set data.parts lower",
                         whole->settings.name, classes, tasks);
    if (classes > PARTITION_ITEMS)
        return error_set(error, ERROR_ARGUMENT, "data.split_by: %s has %zu classes; expected at most %d to cut",
                         whole->settings.name, classes, PARTITION_ITEMS);
    return OK;
}

static void cut_by_labels(struct label_split *split, const struct split_settings *s, const int32_t *cosines)
{
    struct class_partition partition = {
        .similarity = cosines, .n = split->classes, .parts = split->tasks, .goal = s->goal, .seed = s->seed};
    partition_cut(&partition, split->task_of);
    size_t count = 0;
    for (size_t t = 0; t < split->tasks; t++)
        for (size_t c = 0; c < split->classes; c++)
            if (split->task_of[c] == t)
                split->order[count++] = (uint32_t)c;
}

static status fill(struct label_split *split, const struct split_settings *s, const struct options *options,
                   const struct task *whole, const int32_t *cosines, struct error *error)
{
    split->task_of = xmalloc(array_size(split->classes, sizeof *split->task_of));
    split->order = xmalloc(array_size(split->classes, sizeof *split->order));
    split->cosines = xcalloc(split->tasks * split->tasks, sizeof *split->cosines);
    if (s->cut == CUT_BY_LABELS)
        cut_by_labels(split, s, cosines);
    else
        TRY(class_order_cut(options, whole->settings.name, split->classes, split->order, split->task_of, error));
    average(split, cosines);
    return OK;
}

status label_split_create(struct label_split **result, const struct split_settings *settings, size_t tasks,
                          const struct options *options, const struct task *whole, const float *features, size_t embed,
                          struct error *error)
{
    struct label_split *split = xcalloc(1, sizeof *split);
    *split = (struct label_split){.classes = dataset_classes(whole->dataset), .tasks = tasks};
    int32_t *cosines = xmalloc(array_size(split->classes, split->classes * sizeof *cosines));
    measure(split->classes, features, embed, cosines);
    status filled = fill(split, settings, options, whole, cosines, error);
    free(cosines);
    if (filled != OK) {
        label_split_destroy(split);
        return filled;
    }
    *result = split;
    return OK;
}

void label_split_destroy(struct label_split *split)
{
    if (split == NULL)
        return;
    free(split->task_of);
    free(split->order);
    free(split->cosines);
    free(split);
}

void label_split_add_means(struct text *out, const struct label_split *split)
{
    if (!isnan(split->within))
        text_add(out, "%.4f within tasks%s", split->within, isnan(split->between) ? "" : ", ");
    if (!isnan(split->between))
        text_add(out, "%.4f between", split->between);
    if (out->size == 0)
        text_add(out, "none, of one class");
}

void label_split_print(const struct label_split *split, const struct dataset *whole, FILE *out)
{
    for (size_t t = 0; t < split->tasks; t++) {
        struct text names = {0};
        for (size_t i = 0; i < split->classes; i++)
            if (split->task_of[split->order[i]] == t) {
                text_add(&names, names.size > 0 ? ", " : "");
                text_add_visible(&names, dataset_class_name(whole, split->order[i]));
            }
        fprintf(out, "# task %zu of %zu: %s\n", t + 1, split->tasks, names.data != NULL ? names.data : "");
        text_free(&names);
    }
    struct text means = {0};
    label_split_add_means(&means, split);
    fprintf(out, "# mean cosine of class names: %s\n", means.data);
    text_free(&means);
}
