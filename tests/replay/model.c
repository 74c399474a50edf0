#include "tests/replay/model.h"

#include <string.h>

#include "adapters/experts/expert.h"

const char *const model_towers[TOWERS] = {"image", "text"};

/* What products of bf16 values may add, several times what was seen. An expert chosen otherwise changes a trajectory
 * from there on, and a row of counts is another when one choice is: some values and decisions may lie outside. */
static const struct {
    const char *key;
    double tolerance;
} bf16_tolerances[] = {{"features", 0.05},
                       {"gates", 0.05},
                       {"eval_logits", 0.5},
                       {"logits", 0.1},
                       {"loss", 0.02},
                       {"grad_rel", 0.25},
                       {"trajectory_losses", 0.05},
                       {"trajectory_params_max", 0.02},
                       {"trajectory_params_rms", 0.005},
                       {"trajectory_digest", 0.005}};
#define BF16_VALUES_OUTSIDE 0.05
#define BF16_DECISIONS_OUTSIDE 0.5

double model_tolerance(const struct model *m, const char *key)
{
    for (size_t i = 0; i < sizeof bf16_tolerances / sizeof *bf16_tolerances; i++)
        if (m->r->backend->precision == PRECISION_BF16 && strcmp(key, bf16_tolerances[i].key) == 0)
            return bf16_tolerances[i].tolerance;
    return recorded_tolerance(m->r, key);
}

static void open_model(struct model *m)
{
    struct replay *r = m->r;
    const json_t *config = r->config, *sizes = json_object_get(config, "dims");
    struct adapter_settings settings = {.experts = recorded_size(config, "E"),
                                        .top_k = recorded_size(config, "topk"),
                                        .tasks = recorded_size(config, "routers"),
                                        .bottleneck = recorded_size(config, "bottleneck"),
                                        .scale = (float)recorded_number(config, "scale"),
                                        .dropout = (float)recorded_number(config, "dropout"),
                                        .noise_epsilon = (float)recorded_number(config, "noise_epsilon")};
    struct clip_stated stated = {.config = {.image_heads = recorded_size(sizes, "vision_heads"),
                                            .text_heads = recorded_size(sizes, "text_heads"),
                                            .activation = ACTIVATION_QUICK_GELU},
                                 .heads_by = "the fixture",
                                 .activation_by = "the fixture"};
    must(clip_load(&m->clip, r->backend, &r->arena, replay_text(r, "%s/clip.safetensors", r->folder), PARAMETERS_FROZEN,
                   &stated, &error));
    must(adapters_create(&m->adapters, r->backend, &r->arena, &m->clip->dimensions, &settings, PARAMETERS_TRAINED,
                         &error));
    must(r->backend->ops->arena_create(r->backend, &m->step, 0, "step", &error));
    m->state = replay_upload(r, &r->arena, NULL, sizeof *m->state);
    m->loss = replay_upload(r, &r->arena, NULL, sizeof *m->loss);
}

void replay_model(struct replay *r)
{
    struct model m = {.r = r};
    if (r->backend->precision == PRECISION_BF16) {
        r->report.values_outside = BF16_VALUES_OUTSIDE;
        r->report.decisions_outside = BF16_DECISIONS_OUTSIDE;
    }
    open_model(&m);
    model_forward(&m);
    model_gradients(&m);
    model_trajectory(&m);
    model_selector(&m);
    model_metrics(&m);
    adapters_destroy(m.adapters);
    clip_destroy(m.clip);
    r->backend->ops->arena_destroy(r->backend, &m.step);
}

static const int32_t *upload_router(struct model *m, size_t batch, int task)
{
    int32_t *host = replay_take(m->r, batch, sizeof *host);
    for (size_t b = 0; b < batch; b++)
        host[b] = task;
    return replay_upload(m->r, &m->step, host, batch * sizeof *host);
}

void model_encode(struct model *m, struct model_pass *pass, const struct model_batch *batch, int task, bool training)
{
    size_t side = m->clip->dimensions.resolution;
    struct tensor images = {.type = TENSOR_F32, .rank = 4, .shape = {batch->sizes[TOWER_IMAGE], 3, side, side}};
    *pass = (struct model_pass){0};
    for (int t = 0; t < TOWERS; t++) {
        size_t noise = m->clip->towers[t].count * batch->sizes[t] * m->adapters->settings.experts;
        pass->encoding[t] = (struct encoding){.arena = &m->step,
                                              .training = training,
                                              .hooks = task >= 0 ? adapters_hooks(m->adapters, (enum tower)t) : NULL,
                                              .router = upload_router(m, batch->sizes[t], task),
                                              .state = m->state};
        /* without noise in training: zeros */
        m->r->given.noise[t] = training ? replay_upload(m->r, &m->step, batch->noise[t], noise * sizeof(float)) : NULL;
    }
    images.data = replay_upload(m->r, &m->step, batch->images, tensor_bytes(&images));
    must(texts_create(&pass->texts, m->clip, &m->step, batch->tokens, batch->sizes[TOWER_TEXT], &error));
    must(clip_encode_images(m->clip, &pass->encoding[TOWER_IMAGE], &images, &pass->passes[TOWER_IMAGE],
                            &pass->features[TOWER_IMAGE], &error));
    must(clip_encode_texts(m->clip, &pass->encoding[TOWER_TEXT], &pass->texts, &pass->passes[TOWER_TEXT],
                           &pass->features[TOWER_TEXT], &error));
}

void model_logits(struct model *m, struct model_pass *pass, float scale)
{
    must(class_head_logits(m->r->backend, &m->step, &pass->features[TOWER_IMAGE], &pass->features[TOWER_TEXT], scale,
                           &pass->head, &error));
}

float model_train(struct model *m, struct model_pass *pass, const struct model_batch *batch, int task)
{
    struct backend *backend = m->r->backend;
    struct tensor dfeatures[TOWERS];
    float scale, loss;
    model_encode(m, pass, batch, task, true);
    must(clip_logit_scale(m->clip, &scale, &error));
    model_logits(m, pass, scale);
    const int32_t *labels =
        replay_upload(m->r, &m->step, batch->labels, batch->sizes[TOWER_IMAGE] * sizeof *batch->labels);
    must(backend->ops->zero(backend, m->loss, sizeof *m->loss, &error));
    must(class_head_loss(backend, &pass->head, &(struct image_labels){.labels = labels},
                         (float)recorded_number(m->r->config, "label_smoothing"), 1.0f, m->loss, &error));
    must(backend->ops->download(backend, &loss, m->loss, sizeof loss, &error));
    must(class_head_backward(backend, &m->step, &pass->head, &dfeatures[TOWER_IMAGE], &dfeatures[TOWER_TEXT], &error));
    for (int t = 0; t < TOWERS; t++)
        must(clip_encode_backward(m->clip, &pass->encoding[t], &pass->passes[t], &dfeatures[t], &error));
    return loss;
}

void model_compare_gates(struct model *m, const char *quantity, const struct model_pass *pass, enum tower tower,
                         size_t block, const float *expected, const char *where)
{
    const struct dispatch *dispatch = &m->adapters->towers[tower].passes[block].routed.dispatch;
    size_t top_k = dispatch->top_k, experts = dispatch->experts, batch = pass->passes[tower].batch, n = batch * top_k;
    int32_t *chosen = replay_download(m->r, dispatch->chosen, n * sizeof *chosen);
    float *values = replay_download(m->r, dispatch->gates, n * sizeof *values),
          *gates = replay_take(m->r, batch * experts, sizeof *gates);
    for (size_t i = 0; i < n; i++)
        gates[i / top_k * experts + (size_t)chosen[i]] = values[i];
    report_values(&m->r->report, quantity, gates, expected, batch * experts, model_tolerance(m, "gates"));
    for (size_t b = 0; b < batch; b++) {
        bool equal = true;
        for (size_t i = b * experts; i < (b + 1) * experts; i++)
            equal = equal && (gates[i] > 0) == (expected[i] > 0);
        report_exact(&m->r->report, replay_text(m->r, "%s, chosen experts", quantity), equal, "%s, sample %zu", where,
                     b);
    }
}
