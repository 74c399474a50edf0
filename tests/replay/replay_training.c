/* The three-task trajectory: losses, rates, gates, counts, parameters, merges and freezes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/freeze.h"
#include "adapters/merge.h"
#include "core/file.h"
#include "models/class_head.h"
#include "models/schedule.h"
#include "tests/adapters/adapters.h"
#include "tests/replay/fixture.h"

struct trajectory {
    struct fixture *f;
    json_t *events;
    size_t next_merge;
    struct safetensors *data, *expect;
    size_t task, experts;
    struct expert_changes happened;
};

static const char *const tower_names[TOWERS] = {"image", "text"};

static const float *step_of(const struct safetensor *tensor, size_t step)
{
    return (const float *)tensor->data + step * (safetensor_elements(tensor) / tensor->shape[0]);
}

static void compare_step_gates(struct trajectory *r, size_t step, const struct replay_pass *pass)
{
    for (int t = 0; t < TOWERS; t++) {
        const struct safetensor *expected = recorded(r->expect, "gates.%s", tower_names[t]);
        for (size_t b = 0; b < r->f->clip->towers[t].count; b++) {
            float *gates;
            char where[64];
            size_t batch = pass->passes[t].batch;
            snprintf(where, sizeof where, "task %zu, step %zu, %s block %zu", r->task, step, tower_names[t], b);
            fixture_gates(r->f, (enum tower)t, b, batch, &gates);
            fixture_compare_gates(r->f, "trajectory gates", gates, step_of(expected, step) + b * batch * r->experts,
                                  batch, where);
            free(gates);
        }
    }
}

static bool same_numbers(const json_t *array, const int32_t *values, size_t n)
{
    bool same = json_array_size(array) == n;
    for (size_t i = 0; same && i < n; i++)
        same = json_integer_value(json_array_get(array, i)) == values[i];
    return same;
}

static size_t list_frozen(const int32_t *frozen, size_t experts, int32_t *list)
{
    size_t count = 0;
    for (size_t e = 0; e < experts; e++)
        if (frozen[e])
            list[count++] = (int32_t)e;
    return count;
}

static void compare_merge(struct trajectory *r, size_t iteration, const struct expert_change *event)
{
    const json_t *want = json_array_get(json_object_get(r->events, "merges"), r->next_merge++);
    const struct merge *m = &event->merge;
    int32_t counts[1024], frozen[1024], list[1024];
    must(adapters_read_counts(r->f->adapters, event->tower, m->block, counts, &error));
    must(adapters_read_frozen(r->f->adapters, event->tower, m->block, frozen, &error));
    size_t frozen_count = list_frozen(frozen, r->experts, list);
#define SAME(key, value) (json_integer_value(json_object_get(want, key)) == (json_int_t)(value))
    bool same = want != NULL && SAME("task", r->task) && SAME("iteration", iteration) && SAME("block", m->block) &&
                SAME("t1", m->source[0]) && SAME("t2", m->source[1]) && SAME("b1", m->target) &&
                strcmp(json_string_value(json_object_get(want, "encoder")), tower_names[event->tower]) == 0 &&
                json_is_true(json_object_get(want, "done")) == (event->kind == CHANGE_MERGE) &&
                strcmp(json_string_value(json_object_get(want, "reason")), merge_skip_name(m->skip)) == 0 &&
                same_numbers(json_object_get(want, "counts"), counts, r->experts) &&
                same_numbers(json_object_get(want, "frozen"), list, frozen_count);
#undef SAME
    report_exact(r->f->report, "merges", same, "task %zu, iteration %zu, %s block %zu: t1 %d, t2 %d, b1 %d", r->task,
                 iteration, tower_names[event->tower], m->block, m->source[0], m->source[1], m->target);
}

static void merge_step(struct trajectory *r, size_t iteration)
{
    struct merge_plan plan = {.moments = MOMENTS_KEEP};
    must(merge_policy_find(&plan.policy, "most_used", &error));
    expert_changes_clear(&r->happened);
    must(adapters_merge(r->f->adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &r->happened, &error));
    for (size_t i = 0; i < r->happened.count; i++)
        compare_merge(r, iteration, &r->happened.changes[i]);
}

static void train_step(struct trajectory *r, const json_t *task, size_t step)
{
    struct fixture *f = r->f;
    const struct safetensor *images, *labels, *tokens, *noise[TOWERS], *losses, *rates;
    images = recorded(r->data, "images");
    labels = recorded(r->data, "labels");
    tokens = recorded(r->data, "tokens");
    losses = recorded(r->expect, "losses");
    rates = recorded(r->expect, "lr");
    arena_reset(&f->step);
    const float *device_noise[TOWERS];
    for (int t = 0; t < TOWERS; t++) {
        void *device;
        noise[t] = recorded(r->data, "noise.%s", tower_names[t]);
        fixture_upload(f, step_of(noise[t], step), safetensor_elements(noise[t]) / noise[t]->shape[0], &device);
        device_noise[t] = device;
    }
    struct schedule schedule = {.peak = recorded_number(task, "lr"),
                                .warmup = (size_t)recorded_number(task, "warmup"),
                                .iterations = (size_t)recorded_number(task, "iterations")};
    struct step_state state = {
        .task = (uint32_t)r->task, .step = (uint32_t)step, .learning_rate = (float)schedule_rate(&schedule, step)};
    must(f->backend->ops->upload(f->backend, f->state, &state, sizeof state, &error));
    report_value(f->report, "learning rate", schedule_rate(&schedule, step), (double)((const float *)rates->data)[step],
                 fixture_tolerance(f, "trajectory_lr"));

    struct replay_pass pass;
    struct class_head c;
    struct tensor dfeatures[TOWERS];
    size_t batch = images->shape[1];
    void *device_labels;
    float scale, loss;
    fixture_encode(f, &pass, step_of(images, step), batch, tokens->data, tokens->shape[0], (int)r->task, true,
                   device_noise);
    compare_step_gates(r, step, &pass);
    must(clip_logit_scale(f->clip, &scale, &error));
    must(class_head_logits(f->backend, &f->step, &pass.features[TOWER_IMAGE], &pass.features[TOWER_TEXT], scale, &c,
                           &error));
    fixture_upload(f, step_of(labels, step), batch, &device_labels);
    must(f->backend->ops->zero(f->backend, f->loss, sizeof *f->loss, &error));
    must(class_head_loss(f->backend, &c, &(struct image_labels){.labels = device_labels},
                         (float)recorded_number(f->config, "label_smoothing"), 1.0f, f->loss, &error));
    must(f->backend->ops->download(f->backend, &loss, f->loss, sizeof loss, &error));
    report_value(f->report, "trajectory losses", (double)loss, (double)((const float *)losses->data)[step],
                 fixture_tolerance(f, "trajectory_losses"));
    must(class_head_backward(f->backend, &f->step, &c, &dfeatures[TOWER_IMAGE], &dfeatures[TOWER_TEXT], &error));
    for (int t = 0; t < TOWERS; t++)
        must(clip_encode_backward(f->clip, &pass.encoding[t], &pass.passes[t], &dfeatures[t], &error));
    const json_t *betas = json_object_get(f->config, "betas");
    struct update_rule rule = {.beta1 = json_number_value(json_array_get(betas, 0)),
                               .beta2 = json_number_value(json_array_get(betas, 1)),
                               .epsilon = recorded_number(f->config, "eps"),
                               .weight_decay = recorded_number(f->config, "weight_decay")};
    must(adapters_step(f->adapters, f->state, &rule, &error));
    if ((step + 1) % (size_t)recorded_number(f->config, "merge_every") == 0)
        merge_step(r, step + 1);
}

static void compare_counts(struct trajectory *r)
{
    for (int t = 0; t < TOWERS; t++) {
        const struct safetensor *expected = recorded(r->expect, "counts.%s", tower_names[t]);
        for (size_t b = 0; b < r->f->clip->towers[t].count; b++) {
            int32_t counts[1024];
            must(adapters_read_counts(r->f->adapters, (enum tower)t, b, counts, &error));
            report_exact(
                r->f->report, "counts",
                memcmp(counts, (const int32_t *)expected->data + b * r->experts, r->experts * sizeof *counts) == 0,
                "task %zu, %s block %zu", r->task, tower_names[t], b);
        }
    }
}

static void freeze(struct trajectory *r)
{
    const json_t *want = json_array_get(json_object_get(r->events, "freezes"), r->task);
    expert_changes_clear(&r->happened);
    struct freeze_plan plan = {.policy = &freeze_most_used,
                               .top_k = (size_t)recorded_number(r->f->config, "freeze_top_k")};
    must(adapters_freeze(r->f->adapters, &plan, (struct rng){0}, &r->happened, &error));
    for (size_t i = 0; i < r->happened.count; i++) {
        const struct expert_change *e = &r->happened.changes[i];
        char key[32];
        int32_t frozen[1024], list[1024], picked[MERGE_SOURCES];
        for (size_t k = 0; k < e->merge.sources; k++)
            picked[k] = e->merge.source[k];
        snprintf(key, sizeof key, "%s_picked", tower_names[e->tower]);
        bool same = same_numbers(json_array_get(json_object_get(want, key), e->merge.block), picked, e->merge.sources);
        must(adapters_read_frozen(r->f->adapters, e->tower, e->merge.block, frozen, &error));
        snprintf(key, sizeof key, "%s_frozen", tower_names[e->tower]);
        size_t count = list_frozen(frozen, r->experts, list);
        same = same && same_numbers(json_array_get(json_object_get(want, key), e->merge.block), list, count);
        report_exact(r->f->report, "freezes", same, "task %zu, %s block %zu", r->task, tower_names[e->tower],
                     e->merge.block);
    }
}

static void compare_parameters(struct trajectory *r)
{
    struct fixture *f = r->f;
    double squares = 0;
    size_t compared = 0;
    for (size_t i = 0; i < adapters_tensor_count(f->adapters); i++) {
        struct group_tensor t;
        char name[192];
        adapters_tensor_at(f->adapters, i, &t);
        float *values = malloc(array_size(t.size, sizeof *values));
        must(group_tensor_download(&t, values, &error));
        snprintf(name, sizeof name, "adapter.%s", t.name);
        const struct safetensor *whole = safetensors_find(r->expect, name);
        snprintf(name, sizeof name, "digest.%s", t.name);
        const struct safetensor *digest = safetensors_find(r->expect, name);
        if (digest == NULL) {
            snprintf(name, sizeof name, "digest.adapter.%s", t.name);
            digest = safetensors_find(r->expect, name);
        }
        report_exact(f->report, "parameters in the fixture", whole != NULL || digest != NULL, "%s", t.name);
        if (whole != NULL) {
            const float *want = whole->data;
            report_values(f->report, "parameters", values, want, t.size, fixture_tolerance(f, "trajectory_params_max"));
            for (size_t k = 0; k < t.size; k++)
                squares += ((double)values[k] - (double)want[k]) * ((double)values[k] - (double)want[k]);
            compared += t.size;
        } else if (digest != NULL) {
            report_digest(f->report, "parameter digests", values, t.size, digest->data,
                          fixture_tolerance(f, "trajectory_digest"));
        }
        free(values);
    }
    if (compared > 0)
        report_value(f->report, "parameters, rms", sqrt(squares / (double)compared), 0,
                     fixture_tolerance(f, "trajectory_params_rms"));
}

static void train_task(struct trajectory *r)
{
    const json_t *task = json_array_get(json_object_get(r->f->config, "tasks"), r->task);
    r->data = recorded_open(r->f->folder, "trajectory/task%zu.data.safetensors", r->task);
    r->expect = recorded_open(r->f->folder, "trajectory/task%zu.expect.safetensors", r->task);
    must(adapters_begin_task(r->f->adapters, r->task, &error));
    for (size_t step = 0; step < (size_t)recorded_number(task, "steps"); step++)
        train_step(r, task, step);
    compare_counts(r);
    freeze(r);
    compare_parameters(r);
    safetensors_close(r->data);
    safetensors_close(r->expect);
    r->data = r->expect = NULL;
}

static void start(struct trajectory *r)
{
    struct safetensors *init;
    r->events = recorded_json(r->f->folder, "trajectory/events.json");
    init = recorded_open(r->f->folder, "trajectory/init.safetensors");
    must(adapters_load(r->f->adapters, init, "adapter.", GROUP_ZERO_LEFT_OUT, &error));
    safetensors_close(init);
}

void replay_trajectory(struct fixture *f)
{
    struct trajectory r = {.f = f, .experts = f->adapters->settings.experts};
    start(&r);
    for (; r.task < json_array_size(json_object_get(f->config, "tasks")); r.task++)
        train_task(&r);
    report_exact(f->report, "number of merges", r.next_merge == json_array_size(json_object_get(r.events, "merges")),
                 "%zu", r.next_merge);
    safetensors_close(r.data);
    safetensors_close(r.expect);
    expert_changes_free(&r.happened);
    json_decref(r.events);
}
