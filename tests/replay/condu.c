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

static status floats_of(const struct recorded_condu *r, const char *name, size_t n, const float **values,
                        struct error *error)
{
    const struct safetensor *found = safetensors_find(r->f->data, name);
    TRY(rival_tensor(r->f, found != NULL ? found->rank : 1, &found, error, "%s", name));
    *values = found->data;
    if (safetensor_elements(found) == n)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: %s: expected %zu values, found %zu", r->f->folder, name, n,
                     safetensor_elements(found));
}

static status read_deltas(struct recorded_condu *r, struct error *error)
{
    char name[160];
    const float *values;
    for (size_t k = 0; k < r->tensors; k++) {
        const struct safetensor *found;
        snprintf(name, sizeof name, "delta.0.%s", r->names[k]);
        if ((found = safetensors_find(r->f->data, name)) == NULL)
            return error_set(error, ERROR_FORMAT, "%s: expected a tensor %s, found none", r->f->folder, name);
        r->first[k + 1] = r->first[k] + safetensor_elements(found);
    }
    for (size_t m = 0; m < r->tasks; m++) {
        r->deltas[m] = xcalloc(r->first[r->tensors] + 1, sizeof **r->deltas);
        for (size_t k = 0; k < r->tensors; k++) {
            size_t n = r->first[k + 1] - r->first[k];
            snprintf(name, sizeof name, "delta.%zu.%s", m, r->names[k]);
            TRY(floats_of(r, name, n, &values, error));
            memcpy(r->deltas[m] + r->first[k], values, n * sizeof *values);
        }
    }
    return OK;
}

static void read_change(const void *context, size_t task, size_t first, size_t count, float *delta)
{
    const struct recorded_condu *r = context;
    memcpy(delta, r->deltas[task] + first, count * sizeof *delta);
}

static status compare_masks(const struct recorded_condu *r, size_t after, size_t k, struct error *error)
{
    char name[160];
    for (size_t m = 0; m <= after; m++) {
        snprintf(name, sizeof name, "after.%zu.mask.%zu.%s", after, m, r->names[k]);
        const struct safetensor *mask = safetensors_find(r->f->data, name);
        size_t n = r->first[k + 1] - r->first[k];
        if (mask == NULL || mask->type != SAFETENSOR_U8 || safetensor_elements(mask) != n)
            return error_set(error, ERROR_FORMAT, "%s: expected %s, %zu bytes", r->f->folder, name, n);
        for (size_t i = 0; i < n; i++)
            report_value(r->f->report, "masks", unified_mask(&r->unified, m, r->first[k] + i),
                         ((const uint8_t *)mask->data)[i], EXACT);
    }
    return OK;
}

static status compare(const struct recorded_condu *r, size_t after, struct error *error)
{
    char name[160];
    const float *values, *rescale;
    float *rebuilt = xmalloc((r->first[r->tensors] + 1) * sizeof *rebuilt);
    snprintf(name, sizeof name, "after.%zu.rescale", after);
    status result = floats_of(r, name, after + 1, &rescale, error);
    for (size_t m = 0; result == OK && m <= after; m++)
        report_value(r->f->report, "factors, relative", (double)r->unified.rescale[m] / (double)rescale[m], 1, RESCALE);
    for (size_t k = 0; result == OK && k < r->tensors; k++) {
        size_t n = r->first[k + 1] - r->first[k];
        snprintf(name, sizeof name, "after.%zu.unified.%s", after, r->names[k]);
        result = floats_of(r, name, n, &values, error);
        if (result == OK)
            report_values(r->f->report, "unified", r->unified.values + r->first[k], values, n, EXACT);
        NEXT(result, compare_masks(r, after, k, error));
        for (size_t m = 0; result == OK && m <= after; m++) {
            unified_rebuild(&r->unified, m, r->first[k], n, rebuilt);
            for (size_t i = 0; i < n; i++)
                report_value(r->f->report, "rebuilt", (double)rebuilt[i],
                             unified_mask(&r->unified, m, r->first[k] + i) ? (double)(rescale[m] * values[i]) : 0,
                             RESCALE * fabs((double)(rescale[m] * values[i])) + 1e-12);
        }
    }
    free(rebuilt);
    return result;
}

/* After each number of tasks for which the folder has a result, from the deltas themselves. */
static status replay_tasks(struct recorded_condu *r, struct error *error)
{
    char name[48];
    size_t replayed = 0;
    TRY(read_deltas(r, error));
    TRY(unified_open(&r->unified, r->first[r->tensors], error));
    for (size_t t = 0; t < r->tasks; t++) {
        snprintf(name, sizeof name, "after.%zu.rescale", t);
        if (safetensors_find(r->f->data, name) == NULL)
            continue;
        TRY(unified_fit(&r->unified, t + 1, r->first + 1, r->tensors, read_change, r, error));
        TRY(compare(r, t, error));
        replayed++;
    }
    return replayed > 0 ? OK : error_set(error, ERROR_FORMAT, "%s: expected after.T.rescale", r->f->folder);
}

status replay_condu(struct rival_fixture *fixture, struct error *error)
{
    const json_t *names = json_object_get(fixture->config, "tensors");
    struct recorded_condu r = {.f = fixture, .tensors = json_array_size(names)};
    TRY(rival_size(fixture, "tasks", &r.tasks, error));
    r.names = xcalloc(r.tensors + 1, sizeof *r.names);
    r.first = xcalloc(r.tensors + 1, sizeof *r.first);
    r.deltas = xcalloc(r.tasks, sizeof *r.deltas);
    status result = OK;
    for (size_t k = 0; k < r.tensors; k++)
        if ((r.names[k] = json_string_value(json_array_get(names, k))) == NULL)
            result = error_set(error, ERROR_FORMAT, "%s/config.json: tensors: expected names", fixture->folder);
    NEXT(result, replay_tasks(&r, error));
    unified_close(&r.unified);
    for (size_t m = 0; m < r.tasks; m++)
        free(r.deltas[m]);
    free(r.deltas);
    free(r.names);
    free(r.first);
    return result;
}
