#include "harness/train/services/unified.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
    for (size_t m = 0; m < u->tasks || m < u->next; m++)
        free(u->masks[m]);
    free(u->masks);
    free(u->rescale);
    free(u->sizes);
    free(u->values);
    *u = (struct unified){0};
}

status unified_begin(struct unified *u, size_t tasks, struct error *error)
{
    u->masks = xrealloc(u->masks, (tasks + 1) * sizeof *u->masks);
    u->rescale = xrealloc(u->rescale, (tasks + 1) * sizeof *u->rescale);
    free(u->sizes);
    u->sizes = xcalloc(2 * tasks + 1, sizeof *u->sizes);
    for (u->next = u->tasks; u->next < tasks; u->next++) {
        u->masks[u->next] = calloc(u->n / 8 + 1, 1);
        if (u->masks[u->next] == NULL)
            return error_set(error, ERROR_MEMORY, "no memory for the mask of %zu values of a task", u->n);
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

/* deltas [next][count] of values first …; adds the magnitudes to both sums of each task */
static void unify(struct unified *u, size_t first, size_t count, const float *deltas, double *magnitudes)
{
    for (size_t i = 0; i < count; i++) {
        float sum = 0, largest = 0;
        for (size_t m = 0; m < u->next; m++)
            sum += deltas[m * count + i];
        float sign = sum / (float)u->next > 0 ? 1 : -1;
        for (size_t m = 0; m < u->next; m++) {
            float delta = deltas[m * count + i], aligned = delta * sign;
            set_mask(u, m, first + i, aligned > 0);
            largest = aligned > largest ? aligned : largest;
            magnitudes[2 * m] += fabs((double)delta);
        }
        u->values[first + i] = largest * sign;
        for (size_t m = 0; m < u->next; m++)
            magnitudes[2 * m + 1] += deltas[m * count + i] * sign > 0 ? (double)largest : 0;
    }
}

void unified_tensor(struct unified *u, size_t first, size_t size,
                    void (*read)(const void *context, size_t task, size_t first, size_t count, float *delta),
                    const void *context)
{
    float *deltas = xmalloc(u->next * AT_A_TIME * sizeof *deltas);
    double *magnitudes = xcalloc(2 * u->next, sizeof *magnitudes);
    for (size_t done = 0; done < size;) {
        size_t count = size - done < AT_A_TIME ? size - done : AT_A_TIME;
        for (size_t m = 0; m < u->next; m++)
            read(context, m, first + done, count, deltas + m * count);
        unify(u, first + done, count, deltas, magnitudes);
        done += count;
    }
    for (size_t k = 0; k < 2 * u->next && size > 0; k++)
        u->sizes[k] += magnitudes[k] / (double)size;
    free(magnitudes);
    free(deltas);
}

/* Nothing is left of a task whose change is 0: it is rebuilt as 0. */
void unified_end(struct unified *u)
{
    u->tasks = u->next;
    for (size_t m = 0; m < u->tasks; m++)
        u->rescale[m] = u->sizes[2 * m + 1] > 0 ? (float)(u->sizes[2 * m] / u->sizes[2 * m + 1]) : 0;
}

void unified_rebuild(const struct unified *u, size_t task, size_t first, size_t count, float *delta)
{
    for (size_t i = 0; i < count; i++)
        delta[i] = unified_mask(u, task, first + i) ? u->values[first + i] * u->rescale[task] : 0;
}

status unified_keep(struct unified *u, size_t tasks, const struct serializer *serializer, struct error *error)
{
    if (!serializer->saving)
        TRY(unified_begin(u, tasks, error));
    TRY(serializer_host(serializer, "unified.values", SAFETENSOR_F32, u->n, u->values, error));
    TRY(serializer_host(serializer, "unified.rescale", SAFETENSOR_F32, tasks, u->rescale, error));
    for (size_t m = 0; m < tasks; m++) {
        char name[48];
        snprintf(name, sizeof name, "unified.mask%zu", m);
        TRY(serializer_host(serializer, name, SAFETENSOR_U8, u->n / 8 + 1, u->masks[m], error));
    }
    u->tasks = tasks;
    return OK;
}
