/* fixtures/methods/icarl: which images herding picks, and what the memory holds after each task. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/train/exemplars.h"
#include "models/files/safetensors.h"
#include "tests/replay/replay_methods.h"

struct herded {
    struct method_fixture *f;
    struct safetensors *file;
    struct exemplars memory;
};

static size_t integer_at(const json_t *list, size_t index)
{
    return (size_t)json_integer_value(json_array_get(list, index));
}

/* What the memory holds: a list of picks per task so far. */
static void compare_memory(const struct herded *h, size_t after)
{
    const json_t *expected = json_array_get(json_object_get(h->f->config, "after"), after);
    size_t i = 0;
    for (size_t t = 0; t < json_array_size(expected); t++)
        for (size_t k = 0; k < json_array_size(json_array_get(expected, t)); k++, i++) {
            size_t task = SIZE_MAX;
            uint32_t item = 0;
            if (i < exemplars_count(&h->memory))
                exemplars_at(&h->memory, i, &task, &item);
            report_exact(h->f->report, "memory", task == t && item == integer_at(json_array_get(expected, t), k),
                         "after task %zu: exemplar %zu is image %u of task %zu", after, i, item, task);
        }
    report_exact(h->f->report, "memory size", i == exemplars_count(&h->memory),
                 "after task %zu: %zu images, expected %zu", after, exemplars_count(&h->memory), i);
}

static void replay_task(struct herded *h, size_t task)
{
    const json_t *config = h->f->config, *expected = json_array_get(json_object_get(config, "picks"), task);
    const struct safetensor *features = recorded(h->file, "features.%zu", task),
                            *distance = recorded(h->file, "distance.%zu", task);
    size_t share = exemplars_share(&h->memory), n = features->shape[0], count = share < n ? share : n;
    report_exact(h->f->report, "shares", share == integer_at(json_object_get(config, "shares"), task),
                 "task %zu: found %zu", task, share);
    uint32_t *picks = xmalloc((count + 1) * sizeof *picks);
    double *distances = xmalloc((count + 1) * sizeof *distances);
    exemplars_herd(features->data, n, features->shape[1], share, picks, distances);
    for (size_t k = 0; k < count; k++) {
        report_exact(h->f->report, "picks", picks[k] == integer_at(expected, k), "task %zu, pick %zu: found %u", task,
                     k, picks[k]);
        report_value(h->f->report, "distance", distances[k], (double)((const float *)distance->data)[k],
                     json_number_value(json_object_get(h->f->tolerances, "distance")));
    }
    exemplars_add(&h->memory, picks, count);
    compare_memory(h, task);
    free(distances);
    free(picks);
}

void replay_icarl(struct method_fixture *fixture)
{
    struct herded h = {.f = fixture,
                       .file = recorded_open(fixture->folder, "features.safetensors"),
                       .memory = {.capacity = (size_t)json_integer_value(json_object_get(fixture->config, "memory"))}};
    for (size_t t = 0; t < json_array_size(json_object_get(fixture->config, "picks")); t++)
        replay_task(&h, t);
    exemplars_free(&h.memory);
    safetensors_close(h.file);
}
