/* fixtures/methods/icarl: which images herding picks, and what the memory holds after each task. */
#include "harness/train/exemplars.h"
#include "tests/replay/replay.h"

/* What the memory holds: a list of picks per task so far. */
static void compare_memory(struct replay *r, const struct exemplars *memory, size_t after)
{
    const json_t *expected = json_array_get(json_object_get(r->config, "after"), after);
    size_t i = 0;
    for (size_t t = 0; t < json_array_size(expected); t++)
        for (size_t k = 0; k < json_array_size(json_array_get(expected, t)); k++, i++) {
            size_t task = SIZE_MAX;
            uint32_t item = 0;
            if (i < exemplars_count(memory))
                exemplars_at(memory, i, &task, &item);
            report_exact(&r->report, "memory", task == t && item == recorded_at(json_array_get(expected, t), k),
                         "after task %zu: exemplar %zu is image %u of task %zu", after, i, item, task);
        }
    report_exact(&r->report, "memory size", i == exemplars_count(memory), "after task %zu: %zu images, expected %zu",
                 after, exemplars_count(memory), i);
}

static void replay_task(struct replay *r, struct exemplars *memory, size_t task)
{
    const json_t *expected = json_array_get(json_object_get(r->config, "picks"), task);
    const struct safetensor *features = recorded(r->data, "features.%zu", task),
                            *distance = recorded(r->data, "distance.%zu", task);
    size_t share = exemplars_share(memory), n = features->shape[0], count = share < n ? share : n;
    report_exact(&r->report, "shares", share == recorded_at(json_object_get(r->config, "shares"), task),
                 "task %zu: found %zu", task, share);
    uint32_t *picks = replay_take(r, count, sizeof *picks);
    double *distances = replay_take(r, count, sizeof *distances);
    exemplars_herd(features->data, n, features->shape[1], share, picks, distances);
    for (size_t k = 0; k < count; k++) {
        report_exact(&r->report, "picks", picks[k] == recorded_at(expected, k), "task %zu, pick %zu: found %u", task, k,
                     picks[k]);
        report_value(&r->report, "distance", distances[k], recorded_value(distance, k),
                     recorded_tolerance(r, "distance"));
    }
    exemplars_add(memory, picks, count);
    compare_memory(r, memory, task);
}

void replay_icarl(struct replay *r)
{
    struct exemplars memory = {.capacity = recorded_size(r->config, "memory")};
    for (size_t t = 0; t < json_array_size(json_object_get(r->config, "picks")); t++)
        replay_task(r, &memory, t);
    exemplars_free(&memory);
}
