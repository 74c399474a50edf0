/* Forward passes with and without adapters, and one gradient step. */
#include <string.h>

#include "tests/replay/model.h"

static void compare_tensor(struct model *m, const char *quantity, const struct tensor *got,
                           const struct safetensor *expected, const char *tolerance)
{
    if (tensor_elements(got) != safetensor_elements(expected))
        must(error_set(&error, ERROR_FORMAT, "%s: %zu values, the fixture has %zu", quantity, tensor_elements(got),
                       safetensor_elements(expected)));
    replay_compare(m->r, quantity, got->data, expected, model_tolerance(m, tolerance));
}

static void compare_gates(struct model *m, const struct safetensors *file, const char *prefix, const char *quantity,
                          const struct model_pass *pass)
{
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < m->clip->towers[t].count; b++) {
            const struct safetensor *expected = recorded(file, "%sgates.%s.%zu", prefix, model_towers[t], b);
            model_compare_gates(m, quantity, pass, (enum tower)t, b, expected->data, expected->name);
        }
}

static struct model_batch batch_of(const struct replay *r)
{
    const struct safetensor *images = recorded(r->data, "images"), *tokens = recorded(r->data, "tokens");
    return (struct model_batch){.images = images->data,
                                .tokens = tokens->data,
                                .labels = recorded_integers(r->data, "labels"),
                                .sizes = {images->shape[0], tokens->shape[0]}};
}

static void evaluate(struct model *m, const char *prefix, int task)
{
    struct model_batch batch = batch_of(m->r);
    struct model_pass pass;
    arena_reset(&m->step);
    if (task >= 0) { /* an inference pass gives its memory back; the gates are read from one that keeps it */
        model_encode(m, &pass, &batch, task, true);
        compare_gates(m, m->r->data, prefix, "evaluation gates", &pass);
    }
    model_encode(m, &pass, &batch, task, false);
    for (int t = 0; t < TOWERS; t++)
        compare_tensor(m, task >= 0 ? "features" : "zero-shot features", &pass.features[t],
                       recorded(m->r->data, "%s%s_features", prefix, model_towers[t]), "features");
    model_logits(m, &pass, (float)recorded_number(m->r->config, "eval_logit_scale"));
    compare_tensor(m, task >= 0 ? "evaluation logits" : "zero-shot logits", &pass.head.logits,
                   recorded(m->r->data, "%slogits", prefix), "eval_logits");
}

void model_forward(struct model *m)
{
    must(adapters_load(m->adapters, m->r->data, "adapter.", GROUP_COMPLETE, &error));
    evaluate(m, "zeroshot.", -1);
    evaluate(m, "eval.t0.", 0);
    evaluate(m, "eval.t1.", 1);
}

static bool listed(const json_t *names, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < json_array_size(names); i++)
        found = found || strcmp(json_string_value(json_array_get(names, i)), name) == 0;
    return found;
}

/* Does the tensor take part? Its segment's flag says so. */
static bool takes_part(const struct model *m, const struct group_tensor *t)
{
    const struct parameters *group = t->group;
    const struct parameter *p = group->list;
    while (t->offset >= p->offset + p->size)
        p++;
    int32_t flag;
    size_t segment = p->first_segment + (t->offset - p->offset) / (p->size / p->segments);
    must(m->r->backend->ops->download(m->r->backend, &flag, group->flags + group->host_flag[segment], sizeof flag,
                                      &error));
    return flag != 0;
}

static void compare_gradient(struct model *m, const struct safetensors *file, const struct group_tensor *t)
{
    bool part = takes_part(m, t);
    const struct safetensor *expected = recorded_if_there(file, "grad.%s", t->name);
    report_exact(&m->r->report, "gradients present", part == (expected != NULL), "%s: %s a gradient", t->name,
                 part ? "has" : "lacks");
    report_exact(&m->r->report, "gradients absent",
                 (expected == NULL) == listed(json_object_get(m->r->config, "grad_none"), t->name), "%s", t->name);
    if (expected != NULL)
        replay_compare(m->r, "gradients", t->group->gradients + t->offset, expected,
                       model_tolerance(m, "grad_abs") + model_tolerance(m, "grad_rel") * recorded_largest(expected));
}

/* [blocks, B, E] */
static float *read_noise(const struct model *m, const struct safetensors *file, enum tower tower, size_t batch)
{
    size_t per_block = batch * m->adapters->settings.experts, blocks = m->clip->towers[tower].count;
    float *noise = replay_take(m->r, blocks * per_block, sizeof *noise);
    for (size_t b = 0; b < blocks; b++)
        memcpy(noise + b * per_block, recorded_floats(file, per_block, "noise.%s.%zu", model_towers[tower], b),
               per_block * sizeof *noise);
    return noise;
}

void model_gradients(struct model *m)
{
    struct safetensors *file = recorded_open(m->r, "grad.safetensors");
    struct model_batch batch = batch_of(m->r);
    struct model_pass pass;
    must(adapters_load(m->adapters, m->r->data, "adapter.", GROUP_COMPLETE, &error));
    must(adapters_begin_task(m->adapters, 0, &error));
    arena_reset(&m->step);
    for (int t = 0; t < TOWERS; t++)
        batch.noise[t] = read_noise(m, file, (enum tower)t, batch.sizes[t]);
    float loss = model_train(m, &pass, &batch, 0);
    compare_gates(m, file, "", "training gates", &pass);
    compare_tensor(m, "training logits", &pass.head.logits, recorded(file, "logits"), "logits");
    report_value(&m->r->report, "loss", (double)loss, recorded_value(recorded(file, "loss"), 0),
                 model_tolerance(m, "loss"));
    for (size_t i = 0; i < adapters_tensor_count(m->adapters); i++) {
        struct group_tensor t;
        adapters_tensor_at(m->adapters, i, &t);
        compare_gradient(m, file, &t);
    }
    safetensors_close(file);
}
