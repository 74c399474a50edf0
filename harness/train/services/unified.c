#include "harness/train/services/unified.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum { AT_A_TIME = 4096 };

status unified_open(struct unified *u, size_t n, struct error *error)
{
    *u = (struct unified){.n = n, .values = calloc(n + 1, sizeof *u->values)};
    if (u->values != NULL)
        return OK;
    return error_set(error, ERROR_MEMORY, "no memory for a unified change of %zu values", n);
}

void unified_close(struct unified *u)
{
    for (size_t m = 0; m < u->tasks; m++)
        free(u->masks[m]);
    free(u->masks);
    free(u->rescale);
    free(u->values);
    *u = (struct unified){0};
}

/* Empty masks for new tasks. */
static status take_tasks(struct unified *u, size_t tasks, struct error *error)
{
    u->masks = xrealloc(u->masks, (tasks + 1) * sizeof *u->masks);
    u->rescale = xrealloc(u->rescale, (tasks + 1) * sizeof *u->rescale);
    for (; u->tasks < tasks; u->tasks++) {
        u->masks[u->tasks] = calloc(u->n / 8 + 1, 1);
        if (u->masks[u->tasks] == NULL)
            return error_set(error, ERROR_MEMORY, "no memory for the mask of %zu values of a task", u->n);
        u->rescale[u->tasks] = 0;
    }
    return OK;
}

bool unified_mask(const struct unified *u, size_t task, size_t value)
{
    return u->masks[task][value / 8] >> value % 8 & 1;
}

static void set_mask(struct unified *u, size_t task, size_t value, bool on)
{
    uint8_t *byte = &u->masks[task][value / 8], bit = (uint8_t)(1U << value % 8);
    *byte = (uint8_t)(on ? *byte | bit : *byte & ~bit);
}

/* deltas [tasks][count] of values first …; adds the magnitudes of each task's change and of what is left of it */
static void unify(struct unified *u, size_t first, size_t count, const float *deltas, double (*magnitudes)[2])
{
    for (size_t i = 0; i < count; i++) {
        float sum = 0, largest = 0;
        for (size_t m = 0; m < u->tasks; m++)
            sum += deltas[m * count + i];
        float sign = sum / (float)u->tasks > 0 ? 1 : -1;
        for (size_t m = 0; m < u->tasks; m++)
            largest = fmaxf(largest, deltas[m * count + i] * sign);
        for (size_t m = 0; m < u->tasks; m++) {
            bool kept = deltas[m * count + i] * sign > 0;
            set_mask(u, m, first + i, kept);
            magnitudes[m][0] += fabs((double)deltas[m * count + i]);
            magnitudes[m][1] += kept ? (double)largest : 0;
        }
        u->values[first + i] = largest * sign;
    }
}

/* Nothing is left of a task whose change is 0: it is rebuilt as 0. */
status unified_fit(struct unified *u, size_t tasks, const size_t *ends, size_t tensors,
                   void (*read)(const void *context, size_t task, size_t first, size_t count, float *delta),
                   const void *context, struct error *error)
{
    TRY(take_tasks(u, tasks, error));
    float *deltas = xmalloc(tasks * AT_A_TIME * sizeof *deltas);
    double(*of_tensor)[2] = xmalloc(tasks * sizeof *of_tensor), (*means)[2] = xcalloc(tasks, sizeof *means);
    for (size_t k = 0, first = 0; k < tensors; k++) {
        double size = (double)(ends[k] - first);
        memset(of_tensor, 0, tasks * sizeof *of_tensor);
        for (size_t count; first < ends[k]; first += count) {
            count = ends[k] - first < AT_A_TIME ? ends[k] - first : AT_A_TIME;
            for (size_t m = 0; m < tasks; m++)
                read(context, m, first, count, deltas + m * count);
            unify(u, first, count, deltas, of_tensor);
        }
        for (size_t m = 0; m < 2 * tasks && size > 0; m++)
            means[m / 2][m % 2] += of_tensor[m / 2][m % 2] / size;
    }
    for (size_t m = 0; m < tasks; m++)
        u->rescale[m] = means[m][1] > 0 ? (float)(means[m][0] / means[m][1]) : 0;
    free(means);
    free(of_tensor);
    free(deltas);
    return OK;
}

void unified_rebuild(const struct unified *u, size_t task, size_t first, size_t count, float *delta)
{
    for (size_t i = 0; i < count; i++)
        delta[i] = unified_mask(u, task, first + i) ? u->values[first + i] * u->rescale[task] : 0;
}

status unified_keep(struct unified *u, size_t tasks, const struct serializer *serializer, struct error *error)
{
    if (!serializer->saving)
        TRY(take_tasks(u, tasks, error));
    TRY(serializer_host(serializer, "unified.values", SAFETENSOR_F32, u->n, u->values, error));
    TRY(serializer_host(serializer, "unified.rescale", SAFETENSOR_F32, tasks, u->rescale, error));
    for (size_t m = 0; m < tasks; m++) {
        char name[48];
        snprintf(name, sizeof name, "unified.mask%zu", m);
        TRY(serializer_host(serializer, name, SAFETENSOR_U8, u->n / 8 + 1, u->masks[m], error));
    }
    return OK;
}
