/* The three-task trajectory: losses, rates, gates, counts, parameters, merges and freezes. */
#include <math.h>
#include <string.h>

#include "adapters/merge.h"
#include "models/optimizers/optimizer.h"
#include "tests/adapters/adapters.h"
#include "tests/replay/model.h"

enum { EXPERTS_MOST = 1024 };

struct trajectory {
    struct model *m;
    struct report *report;
    json_t *events;
    size_t next_merge;
    struct safetensors *data, *expect;
    size_t task, experts;
    struct expert_changes happened;
};

/* Of float or integer values. */
static const void *step_of(const struct safetensor *tensor, size_t step)
{
    return (const float *)tensor->data + step * (safetensor_elements(tensor) / tensor->shape[0]);
}

static void compare_gates(struct trajectory *r, size_t step, const struct model_pass *pass)
{
    for (int t = 0; t < TOWERS; t++) {
        const float *expected = step_of(recorded(r->expect, "gates.%s", model_towers[t]), step);
        for (size_t b = 0; b < r->m->clip->towers[t].count; b++) {
            model_compare_gates(
                r->m, "trajectory gates", pass, (enum tower)t, b, expected,
                replay_text(r->m->r, "task %zu, step %zu, %s block %zu", r->task, step, model_towers[t], b));
            expected += pass->passes[t].batch * r->experts;
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

static bool same_frozen(const struct trajectory *r, const json_t *expected, enum tower tower, size_t block)
{
    int32_t frozen[EXPERTS_MOST], list[EXPERTS_MOST];
    size_t count = 0;
    must(adapters_read_frozen(r->m->adapters, tower, block, frozen, &error));
    for (size_t e = 0; e < r->experts; e++)
        if (frozen[e])
            list[count++] = (int32_t)e;
    return same_numbers(expected, list, count);
}

static void compare_merge(struct trajectory *r, size_t iteration, const struct expert_change *event)
{
    const json_t *want = json_array_get(json_object_get(r->events, "merges"), r->next_merge++);
    const struct merge *m = &event->merge;
    int32_t counts[EXPERTS_MOST];
    must(adapters_read_counts(r->m->adapters, event->tower, m->block, counts, &error));
#define SAME(key, value) (json_integer_value(json_object_get(want, key)) == (json_int_t)(value))
    bool same = want != NULL && SAME("task", r->task) && SAME("iteration", iteration) && SAME("block", m->block) &&
                SAME("t1", m->source[0]) && SAME("t2", m->source[1]) && SAME("b1", m->target) &&
                strcmp(json_string_value(json_object_get(want, "encoder")), model_towers[event->tower]) == 0 &&
                json_is_true(json_object_get(want, "done")) == (event->kind == CHANGE_MERGE) &&
                strcmp(json_string_value(json_object_get(want, "reason")), merge_skip_name(m->skip)) == 0 &&
                same_numbers(json_object_get(want, "counts"), counts, r->experts) &&
                same_frozen(r, json_object_get(want, "frozen"), event->tower, m->block);
#undef SAME
    report_exact(r->report, "merges", same, "task %zu, iteration %zu, %s block %zu: t1 %d, t2 %d, b1 %d", r->task,
                 iteration, model_towers[event->tower], m->block, m->source[0], m->source[1], m->target);
}

static void merge_step(struct trajectory *r, size_t iteration)
{
    struct merge_plan plan = {.moments = MOMENTS_KEEP};
    must(merge_policy_find(&plan.policy, "most_used", &error));
    expert_changes_clear(&r->happened);
    must(adapters_merge(r->m->adapters, &plan, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &r->happened, &error));
    for (size_t i = 0; i < r->happened.count; i++)
        compare_merge(r, iteration, &r->happened.changes[i]);
}

static void train_step(struct trajectory *r, const json_t *task, size_t step)
{
    struct model *m = r->m;
    const json_t *config = m->r->config, *betas = json_object_get(config, "betas");
    const struct safetensor *images = recorded(r->data, "images"), *tokens = recorded(r->data, "tokens");
    struct model_batch batch = {.images = step_of(images, step),
                                .tokens = tokens->data,
                                .labels = step_of(recorded(r->data, "labels"), step),
                                .sizes = {images->shape[1], tokens->shape[0]}};
    struct schedule schedule = {recorded_number(task, "lr"), recorded_size(task, "warmup"),
                                recorded_size(task, "iterations")};
    double rate = schedule_rate(&schedule, step);
    struct step_state state = {.task = (uint32_t)r->task, .step = (uint32_t)step, .learning_rate = (float)rate};
    struct model_pass pass;
    arena_reset(&m->step);
    for (int t = 0; t < TOWERS; t++)
        batch.noise[t] = step_of(recorded(r->data, "noise.%s", model_towers[t]), step);
    must(m->r->backend->ops->upload(m->r->backend, m->state, &state, sizeof state, &error));
    report_value(r->report, "learning rate", rate, recorded_value(recorded(r->expect, "lr"), step),
                 model_tolerance(m, "trajectory_lr"));
    report_value(r->report, "trajectory losses", (double)model_train(m, &pass, &batch, (int)r->task),
                 recorded_value(recorded(r->expect, "losses"), step), model_tolerance(m, "trajectory_losses"));
    compare_gates(r, step, &pass);
    struct update_rule rule = {.beta1 = json_number_value(json_array_get(betas, 0)),
                               .beta2 = json_number_value(json_array_get(betas, 1)),
                               .epsilon = recorded_number(config, "eps"),
                               .weight_decay = recorded_number(config, "weight_decay")};
    must(adapters_step(m->adapters, m->state, &rule, &error));
    if ((step + 1) % recorded_size(config, "merge_every") == 0)
        merge_step(r, step + 1);
}

static void compare_counts(struct trajectory *r)
{
    for (int t = 0; t < TOWERS; t++) {
        const int32_t *expected = recorded_integers(r->expect, "counts.%s", model_towers[t]);
        for (size_t b = 0; b < r->m->clip->towers[t].count; b++, expected += r->experts) {
            int32_t counts[EXPERTS_MOST];
            must(adapters_read_counts(r->m->adapters, (enum tower)t, b, counts, &error));
            report_exact(r->report, "counts", memcmp(counts, expected, r->experts * sizeof *counts) == 0,
                         "task %zu, %s block %zu", r->task, model_towers[t], b);
        }
    }
}

static const json_t *of_block(const struct trajectory *r, const struct expert_change *e, const char *what)
{
    const json_t *freeze = json_array_get(json_object_get(r->events, "freezes"), r->task);
    return json_array_get(json_object_get(freeze, replay_text(r->m->r, "%s_%s", model_towers[e->tower], what)),
                          e->merge.block);
}

static void freeze(struct trajectory *r)
{
    struct freeze_plan plan = {.policy = &freeze_most_used, .top_k = recorded_size(r->m->r->config, "freeze_top_k")};
    expert_changes_clear(&r->happened);
    must(adapters_freeze(r->m->adapters, &plan, (struct rng){0}, &r->happened, &error));
    for (size_t i = 0; i < r->happened.count; i++) {
        const struct expert_change *e = &r->happened.changes[i];
        int32_t picked[MERGE_SOURCES];
        for (size_t k = 0; k < e->merge.sources; k++)
            picked[k] = e->merge.source[k];
        report_exact(r->report, "freezes",
                     same_numbers(of_block(r, e, "picked"), picked, e->merge.sources) &&
                         same_frozen(r, of_block(r, e, "frozen"), e->tower, e->merge.block),
                     "task %zu, %s block %zu", r->task, model_towers[e->tower], e->merge.block);
    }
}

static void compare_parameters(struct trajectory *r)
{
    const struct model *m = r->m;
    double squares = 0;
    size_t compared = 0;
    for (size_t i = 0; i < adapters_tensor_count(m->adapters); i++) {
        struct group_tensor t;
        adapters_tensor_at(m->adapters, i, &t);
        float *values = replay_take(m->r, t.size, sizeof *values);
        must(group_tensor_download(&t, values, &error));
        const struct safetensor *whole = recorded_if_there(r->expect, "adapter.%s", t.name),
                                *digest = recorded_if_there(r->expect, "digest.%s", t.name);
        if (digest == NULL)
            digest = recorded_if_there(r->expect, "digest.adapter.%s", t.name);
        report_exact(r->report, "parameters in the fixture", whole != NULL || digest != NULL, "%s", t.name);
        if (whole != NULL) {
            replay_floats(m->r, "parameters", values, whole, model_tolerance(m, "trajectory_params_max"));
            for (size_t k = 0; k < t.size; k++)
                squares += pow((double)values[k] - recorded_value(whole, k), 2);
            compared += t.size;
        } else if (digest != NULL) {
            report_digest(r->report, "parameter digests", values, t.size, digest->data,
                          model_tolerance(m, "trajectory_digest"));
        }
    }
    if (compared > 0)
        report_value(r->report, "parameters, rms", sqrt(squares / (double)compared), 0,
                     model_tolerance(m, "trajectory_params_rms"));
}

static void train_task(struct trajectory *r)
{
    const json_t *task = json_array_get(json_object_get(r->m->r->config, "tasks"), r->task);
    r->data = recorded_open(r->m->r, "trajectory/task%zu.data.safetensors", r->task);
    r->expect = recorded_open(r->m->r, "trajectory/task%zu.expect.safetensors", r->task);
    must(adapters_begin_task(r->m->adapters, r->task, &error));
    for (size_t step = 0; step < recorded_size(task, "steps"); step++)
        train_step(r, task, step);
    compare_counts(r);
    freeze(r);
    compare_parameters(r);
    safetensors_close(r->data);
    safetensors_close(r->expect);
}

void model_trajectory(struct model *m)
{
    struct trajectory r = {.m = m,
                           .report = &m->r->report,
                           .experts = m->adapters->settings.experts,
                           .events = recorded_json(m->r, "trajectory/events.json")};
    struct safetensors *start = recorded_open(m->r, "trajectory/init.safetensors");
    must(adapters_load(m->adapters, start, "adapter.", GROUP_ZERO_LEFT_OUT, &error));
    safetensors_close(start);
    for (; r.task < json_array_size(json_object_get(m->r->config, "tasks")); r.task++)
        train_task(&r);
    report_exact(r.report, "number of merges", r.next_merge == json_array_size(json_object_get(r.events, "merges")),
                 "%zu", r.next_merge);
    expert_changes_free(&r.happened);
    json_decref(r.events);
}
