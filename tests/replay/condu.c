/* fixtures/rivals/condu: the changes of the tasks so far as one, with masks and factors, after each number of tasks. */
#include <math.h>
#include <string.h>

#include "harness/train/services/merged.h"
#include "tests/replay/replay.h"

#define RESCALE 1e-6 /* relative */
#define EXACT 1e-40

struct condu {
    struct replay *r;
    size_t tasks, tensors;
    const char **names; /* [tensors] */
    size_t *first;      /* [tensors + 1] */
    float **deltas;     /* [tasks] [values of all tensors] */
    struct unified unified;
};

static void read_deltas(struct condu *c)
{
    for (size_t k = 0; k < c->tensors; k++)
        c->first[k + 1] = c->first[k] + safetensor_elements(recorded(c->r->data, "delta.0.%s", c->names[k]));
    for (size_t m = 0; m < c->tasks; m++) {
        c->deltas[m] = replay_take(c->r, c->first[c->tensors], sizeof **c->deltas);
        for (size_t k = 0; k < c->tensors; k++) {
            size_t n = c->first[k + 1] - c->first[k];
            memcpy(c->deltas[m] + c->first[k], recorded_floats(c->r->data, n, "delta.%zu.%s", m, c->names[k]),
                   n * sizeof(float));
        }
    }
}

static void read_change(const void *context, size_t task, size_t first, size_t count, float *delta)
{
    const struct condu *c = context;
    memcpy(delta, c->deltas[task] + first, count * sizeof *delta);
}

/* Of task m and tensor k: the mask, and the change that it makes of the unified values. */
static void compare_task(const struct condu *c, size_t after, size_t k, size_t m, float rescale, const float *values)
{
    const struct safetensor *mask = recorded(c->r->data, "after.%zu.mask.%zu.%s", after, m, c->names[k]);
    size_t first = c->first[k], n = c->first[k + 1] - first;
    float *rebuilt = replay_take(c->r, n, sizeof *rebuilt);
    if (mask->type != SAFETENSOR_U8 || safetensor_elements(mask) != n)
        must(error_set(&error, ERROR_FORMAT, "%s: expected %s, %zu bytes", c->r->folder, mask->name, n));
    unified_rebuild(&c->unified, m, first, n, rebuilt);
    for (size_t i = 0; i < n; i++) {
        double whole = (double)(rescale * values[i]);
        bool masked = unified_mask(&c->unified, m, first + i);
        report_value(&c->r->report, "masks", masked, ((const uint8_t *)mask->data)[i], EXACT);
        report_value(&c->r->report, "rebuilt", (double)rebuilt[i], masked ? whole : 0, RESCALE * fabs(whole) + 1e-12);
    }
}

static void compare(const struct condu *c, size_t after, const float *rescale)
{
    for (size_t m = 0; m <= after; m++)
        report_value(&c->r->report, "factors, relative", (double)c->unified.rescale[m] / (double)rescale[m], 1,
                     RESCALE);
    for (size_t k = 0; k < c->tensors; k++) {
        size_t n = c->first[k + 1] - c->first[k];
        const float *values = recorded_floats(c->r->data, n, "after.%zu.unified.%s", after, c->names[k]);
        report_values(&c->r->report, "unified", c->unified.values + c->first[k], values, n, EXACT);
        for (size_t m = 0; m <= after; m++)
            compare_task(c, after, k, m, rescale[m], values);
    }
}

/* After each number of tasks for which the folder has a result, from the deltas themselves. */
static void replay_tasks(struct condu *c)
{
    read_deltas(c);
    must(unified_open(&c->unified, c->first[c->tensors], &error));
    for (size_t t = 0; t < c->tasks; t++) {
        if (recorded_if_there(c->r->data, "after.%zu.rescale", t) == NULL)
            continue;
        must(unified_fit(&c->unified, t + 1, c->first + 1, c->tensors, read_change, c, &error));
        compare(c, t, recorded_floats(c->r->data, t + 1, "after.%zu.rescale", t));
    }
}

void replay_condu(struct replay *r)
{
    const json_t *names = json_object_get(r->config, "tensors");
    struct condu c = {.r = r, .tensors = json_array_size(names), .tasks = recorded_size(r->config, "tasks")};
    c.names = replay_take(r, c.tensors, sizeof *c.names);
    c.first = replay_take(r, c.tensors + 1, sizeof *c.first);
    c.deltas = replay_take(r, c.tasks, sizeof *c.deltas);
    for (size_t k = 0; k < c.tensors; k++)
        if ((c.names[k] = json_string_value(json_array_get(names, k))) == NULL)
            must(error_set(&error, ERROR_FORMAT, "%s/config.json: tensors: expected names", r->folder));
    replay_tasks(&c);
    unified_close(&c.unified);
}
