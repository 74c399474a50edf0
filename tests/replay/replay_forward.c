/* Forward passes with and without adapters, and one gradient step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/class_head.h"
#include "tests/replay/fixture.h"

static const char *const tower_names[TOWERS] = {"image", "text"};

static void compare_tensor(struct fixture *f, const char *quantity, const struct tensor *got,
                           const struct safetensor *expected, double tolerance)
{
    size_t n = tensor_elements(got);
    float *values = malloc(array_size(n, sizeof *values));
    must(f->backend->ops->download(f->backend, values, got->data, n * sizeof *values, &error));
    if (n != safetensor_elements(expected))
        must(error_set(&error, ERROR_FORMAT, "%s: %zu values, the fixture has %zu", quantity, n,
                       safetensor_elements(expected)));
    report_values(f->report, quantity, values, expected->data, n, tolerance);
    free(values);
}

static void compare_all_gates(struct fixture *f, const struct safetensors *file, const char *prefix,
                              const char *quantity, const struct replay_pass *pass)
{
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < f->clip->towers[t].count; b++) {
            const struct safetensor *expected;
            float *gates;
            char where[96];
            snprintf(where, sizeof where, "%sgates.%s.%zu", prefix, tower_names[t], b);
            expected = recorded(file, "%s", where);
            fixture_gates(f, (enum tower)t, b, pass->passes[t].batch, &gates);
            fixture_compare_gates(f, quantity, gates, expected->data, pass->passes[t].batch, where);
            free(gates);
        }
}

struct inputs {
    const struct safetensor *images, *tokens, *labels;
};

static void find_inputs(const struct safetensors *file, struct inputs *inputs)
{
    inputs->images = recorded(file, "images");
    inputs->tokens = recorded(file, "tokens");
    inputs->labels = recorded(file, "labels");
}

static void evaluate(struct fixture *f, const struct safetensors *file, const struct inputs *in, const char *prefix,
                     int task)
{
    struct replay_pass pass;
    struct class_head c;
    const struct safetensor *expected;
    arena_reset(&f->step);
    fixture_encode(f, &pass, in->images->data, in->images->shape[0], in->tokens->data, in->tokens->shape[0], task,
                   false, NULL);
    if (task >= 0) {
        /* An inference pass gives its memory back; the gates are read from one that keeps it. */
        struct replay_pass kept;
        const float *no_noise[TOWERS];
        for (int t = 0; t < TOWERS; t++) {
            size_t values = f->clip->towers[t].count * pass.passes[t].batch * f->adapters->settings.experts;
            float *zeros = calloc(values, sizeof *zeros);
            void *device;
            fixture_upload(f, zeros, values, &device);
            free(zeros);
            no_noise[t] = device;
        }
        fixture_encode(f, &kept, in->images->data, in->images->shape[0], in->tokens->data, in->tokens->shape[0], task,
                       true, no_noise);
        compare_all_gates(f, file, prefix, "evaluation gates", &kept);
    }
    for (int t = 0; t < TOWERS; t++) {
        expected = recorded(file, "%s%s_features", prefix, tower_names[t]);
        compare_tensor(f, task >= 0 ? "features" : "zero-shot features", &pass.features[t], expected,
                       fixture_tolerance(f, "features"));
    }
    must(class_head_logits(f->backend, &f->step, &pass.features[TOWER_IMAGE], &pass.features[TOWER_TEXT],
                           (float)recorded_number(f->config, "eval_logit_scale"), &c, &error));
    expected = recorded(file, "%slogits", prefix);
    compare_tensor(f, task >= 0 ? "evaluation logits" : "zero-shot logits", &c.logits, expected,
                   fixture_tolerance(f, "eval_logits"));
}

void replay_forward(struct fixture *f)
{
    struct safetensors *file;
    struct inputs inputs;
    file = recorded_open(f->folder, "forward.safetensors");
    find_inputs(file, &inputs);
    must(adapters_load(f->adapters, file, "adapter.", GROUP_COMPLETE, &error));
    for (int task = -1; task < 2; task++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, task < 0 ? "zeroshot." : "eval.t%d.", task);
        evaluate(f, file, &inputs, prefix, task);
    }
    safetensors_close(file);
}

static bool listed(const json_t *names, const char *name)
{
    for (size_t i = 0; i < json_array_size(names); i++)
        if (strcmp(json_string_value(json_array_get(names, i)), name) == 0)
            return true;
    return false;
}

/* Does the tensor take part? Its segment's flag says so. */
static void takes_part(const struct fixture *f, const struct group_tensor *t, bool *part)
{
    const struct parameters *group = t->group;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        if (t->offset < p->offset || t->offset >= p->offset + p->size)
            continue;
        int32_t flag;
        size_t segment = p->first_segment + (t->offset - p->offset) / (p->size / p->segments);
        must(f->backend->ops->download(f->backend, &flag, group->flags + group->host_flag[segment], sizeof flag,
                                       &error));
        *part = flag != 0;
        return;
    }
    must(error_set(&error, ERROR_ARGUMENT, "%s belongs to no parameter", t->name));
}

static void compare_gradient(struct fixture *f, const struct safetensors *file, const struct group_tensor *t)
{
    bool part;
    char name[160];
    snprintf(name, sizeof name, "grad.%s", t->name);
    const struct safetensor *expected = safetensors_find(file, name);
    takes_part(f, t, &part);
    report_exact(f->report, "gradients present", part == (expected != NULL), "%s: %s a gradient", t->name,
                 part ? "has" : "lacks");
    report_exact(f->report, "gradients absent",
                 (expected == NULL) == listed(json_object_get(f->config, "grad_none"), t->name), "%s", t->name);
    if (expected == NULL)
        return;
    float *values = malloc(array_size(t->size, sizeof *values));
    const float *gradients = t->group->gradients + t->offset;
    must(f->backend->ops->download(f->backend, values, gradients, t->size * sizeof *values, &error));
    const float *want = expected->data;
    double largest = 0;
    for (size_t i = 0; i < t->size; i++)
        largest = want[i] > largest ? want[i] : -want[i] > largest ? -want[i] : largest;
    report_values(f->report, "gradients", values, want, t->size,
                  fixture_tolerance(f, "grad_abs") + fixture_tolerance(f, "grad_rel") * largest);
    free(values);
}

static void upload_noise(struct fixture *f, const struct safetensors *file, enum tower tower, size_t batch,
                         const float **noise)
{
    size_t per_block = batch * f->adapters->settings.experts, blocks = f->clip->towers[tower].count;
    float *all = malloc(array_size(blocks * per_block, sizeof *all));
    for (size_t b = 0; b < blocks; b++) {
        const struct safetensor *one = recorded(file, "noise.%s.%zu", tower_names[tower], b);
        memcpy(all + b * per_block, one->data, per_block * sizeof *all);
    }
    void *device = NULL;
    fixture_upload(f, all, blocks * per_block, &device);
    free(all);
    *noise = device;
}

static void gradient_step(struct fixture *f, const struct safetensors *file, const struct inputs *in)
{
    struct replay_pass pass;
    struct class_head c;
    struct tensor dfeatures[TOWERS];
    const float *noise[TOWERS];
    const struct safetensor *expected;
    size_t batches[TOWERS] = {in->images->shape[0], in->tokens->shape[0]};
    float scale, loss;
    void *labels;
    arena_reset(&f->step);
    must(adapters_begin_task(f->adapters, 0, &error));
    for (int t = 0; t < TOWERS; t++)
        upload_noise(f, file, (enum tower)t, batches[t], &noise[t]);
    fixture_encode(f, &pass, in->images->data, batches[TOWER_IMAGE], in->tokens->data, batches[TOWER_TEXT], 0, true,
                   noise);
    compare_all_gates(f, file, "", "training gates", &pass);
    must(clip_logit_scale(f->clip, &scale, &error));
    must(class_head_logits(f->backend, &f->step, &pass.features[TOWER_IMAGE], &pass.features[TOWER_TEXT], scale, &c,
                           &error));
    expected = recorded(file, "logits");
    compare_tensor(f, "training logits", &c.logits, expected, fixture_tolerance(f, "logits"));
    fixture_upload(f, in->labels->data, batches[TOWER_IMAGE], &labels);
    must(f->backend->ops->zero(f->backend, f->loss, sizeof *f->loss, &error));
    must(class_head_loss(f->backend, &c, &(struct image_labels){.labels = labels},
                         (float)recorded_number(f->config, "label_smoothing"), 1.0f, f->loss, &error));
    must(f->backend->ops->download(f->backend, &loss, f->loss, sizeof loss, &error));
    expected = recorded(file, "loss");
    report_value(f->report, "loss", (double)loss, (double)*(const float *)expected->data, fixture_tolerance(f, "loss"));
    must(class_head_backward(f->backend, &f->step, &c, &dfeatures[TOWER_IMAGE], &dfeatures[TOWER_TEXT], &error));
    for (int t = 0; t < TOWERS; t++)
        must(clip_encode_backward(f->clip, &pass.encoding[t], &pass.passes[t], &dfeatures[t], &error));
    for (size_t i = 0; i < adapters_tensor_count(f->adapters); i++) {
        struct group_tensor t;
        adapters_tensor_at(f->adapters, i, &t);
        compare_gradient(f, file, &t);
    }
}

void replay_gradients(struct fixture *f)
{
    struct safetensors *forward = recorded_open(f->folder, "forward.safetensors"),
                       *file = recorded_open(f->folder, "grad.safetensors");
    struct inputs inputs;
    find_inputs(forward, &inputs);
    must(adapters_load(f->adapters, forward, "adapter.", GROUP_COMPLETE, &error));
    gradient_step(f, file, &inputs);
    safetensors_close(file);
    safetensors_close(forward);
}
