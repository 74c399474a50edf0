/* fixtures/rivals/condu: the changes of the tasks so far as one, with masks and factors, after each number of tasks. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/train/services/unified.h"
#include "tests/replay/replay_rivals.h"

#define RESCALE 1e-6 /* relative */
#define EXACT 1e-40

struct recorded_condu {
    struct rival_fixture *f;
    size_t tasks, tensors;
    const char **names; /* [tensors] */
    size_t *first;      /* [tensors + 1] */
    float **deltas;     /* [tasks] [values of all tensors] */
    struct unified unified;
};

static void read_deltas(struct recorded_condu *r)
{
    char name[160];
    const float *values;
    for (size_t k = 0; k < r->tensors; k++) {
        r->first[k + 1] = r->first[k] + safetensor_elements(recorded(r->f->data, "delta.0.%s", r->names[k]));
    }
    for (size_t m = 0; m < r->tasks; m++) {
        r->deltas[m] = xcalloc(r->first[r->tensors] + 1, sizeof **r->deltas);
        for (size_t k = 0; k < r->tensors; k++) {
            size_t n = r->first[k + 1] - r->first[k];
            snprintf(name, sizeof name, "delta.%zu.%s", m, r->names[k]);
            values = recorded_floats(r->f->data, name, n);
            memcpy(r->deltas[m] + r->first[k], values, n * sizeof *values);
        }
    }
}

static void read_change(const void *context, size_t task, size_t first, size_t count, float *delta)
{
    const struct recorded_condu *r = context;
    memcpy(delta, r->deltas[task] + first, count * sizeof *delta);
}

static void compare_masks(const struct recorded_condu *r, size_t after, size_t k)
{
    char name[160];
    for (size_t m = 0; m <= after; m++) {
        snprintf(name, sizeof name, "after.%zu.mask.%zu.%s", after, m, r->names[k]);
        const struct safetensor *mask = safetensors_find(r->f->data, name);
        size_t n = r->first[k + 1] - r->first[k];
        if (mask == NULL || mask->type != SAFETENSOR_U8 || safetensor_elements(mask) != n)
            must(error_set(&error, ERROR_FORMAT, "%s: expected %s, %zu bytes", r->f->folder, name, n));
        for (size_t i = 0; i < n; i++)
            report_value(r->f->report, "masks", unified_mask(&r->unified, m, r->first[k] + i),
                         ((const uint8_t *)mask->data)[i], EXACT);
    }
}

static void compare(const struct recorded_condu *r, size_t after)
{
    char name[160];
    const float *values, *rescale;
    float *rebuilt = xmalloc((r->first[r->tensors] + 1) * sizeof *rebuilt);
    snprintf(name, sizeof name, "after.%zu.rescale", after);
    rescale = recorded_floats(r->f->data, name, after + 1);
    for (size_t m = 0; m <= after; m++)
        report_value(r->f->report, "factors, relative", (double)r->unified.rescale[m] / (double)rescale[m], 1, RESCALE);
    for (size_t k = 0; k < r->tensors; k++) {
        size_t n = r->first[k + 1] - r->first[k];
        snprintf(name, sizeof name, "after.%zu.unified.%s", after, r->names[k]);
        values = recorded_floats(r->f->data, name, n);
        report_values(r->f->report, "unified", r->unified.values + r->first[k], values, n, EXACT);
        compare_masks(r, after, k);
        for (size_t m = 0; m <= after; m++) {
            unified_rebuild(&r->unified, m, r->first[k], n, rebuilt);
            for (size_t i = 0; i < n; i++)
                report_value(r->f->report, "rebuilt", (double)rebuilt[i],
                             unified_mask(&r->unified, m, r->first[k] + i) ? (double)(rescale[m] * values[i]) : 0,
                             RESCALE * fabs((double)(rescale[m] * values[i])) + 1e-12);
        }
    }
    free(rebuilt);
}

/* After each number of tasks for which the folder has a result, from the deltas themselves. */
static void replay_tasks(struct recorded_condu *r)
{
    char name[48];
    size_t replayed = 0;
    read_deltas(r);
    must(unified_open(&r->unified, r->first[r->tensors], &error));
    for (size_t t = 0; t < r->tasks; t++) {
        snprintf(name, sizeof name, "after.%zu.rescale", t);
        if (safetensors_find(r->f->data, name) == NULL)
            continue;
        must(unified_fit(&r->unified, t + 1, r->first + 1, r->tensors, read_change, r, &error));
        compare(r, t);
        replayed++;
    }
    must(replayed > 0 ? OK : error_set(&error, ERROR_FORMAT, "%s: expected after.T.rescale", r->f->folder));
}

void replay_condu(struct rival_fixture *fixture)
{
    const json_t *names = json_object_get(fixture->config, "tensors");
    struct recorded_condu r = {.f = fixture, .tensors = json_array_size(names)};
    r.tasks = rival_size(fixture, "tasks");
    r.names = xcalloc(r.tensors + 1, sizeof *r.names);
    r.first = xcalloc(r.tensors + 1, sizeof *r.first);
    r.deltas = xcalloc(r.tasks, sizeof *r.deltas);
    for (size_t k = 0; k < r.tensors; k++)
        if ((r.names[k] = json_string_value(json_array_get(names, k))) == NULL)
            must(error_set(&error, ERROR_FORMAT, "%s/config.json: tensors: expected names", fixture->folder));
    replay_tasks(&r);
    unified_close(&r.unified);
    for (size_t m = 0; m < r.tasks; m++)
        free(r.deltas[m]);
    free(r.deltas);
    free(r.names);
    free(r.first);
}
