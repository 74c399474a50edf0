#include "tests/replay/fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/experts/expert.h"
#include "core/file.h"

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

double fixture_tolerance(const struct fixture *fixture, const char *key)
{
    for (size_t i = 0; i < sizeof bf16_tolerances / sizeof *bf16_tolerances; i++)
        if (fixture->backend->precision == PRECISION_BF16 && strcmp(key, bf16_tolerances[i].key) == 0)
            return bf16_tolerances[i].tolerance;
    return recorded_number(fixture->tolerances, key);
}

static void open_models(struct fixture *fixture)
{
    const json_t *config = fixture->config;
    struct adapter_settings settings = {.experts = (size_t)recorded_number(config, "E"),
                                        .top_k = (size_t)recorded_number(config, "topk"),
                                        .tasks = (size_t)recorded_number(config, "routers"),
                                        .bottleneck = (size_t)recorded_number(config, "bottleneck"),
                                        .scale = (float)recorded_number(config, "scale"),
                                        .dropout = (float)recorded_number(config, "dropout"),
                                        .noise_epsilon = (float)recorded_number(config, "noise_epsilon")};
    const json_t *sizes = json_object_get(config, "dims");
    struct clip_stated stated = {.config = {.image_heads = (size_t)recorded_number(sizes, "vision_heads"),
                                            .text_heads = (size_t)recorded_number(sizes, "text_heads"),
                                            .activation = ACTIVATION_QUICK_GELU},
                                 .heads_by = "the fixture",
                                 .activation_by = "the fixture"};
    char *path = path_format("%s/clip.safetensors", fixture->folder);
    must(clip_load(&fixture->clip, fixture->backend, &fixture->model, path, PARAMETERS_FROZEN, &stated, &error));
    free(path);
    must(adapters_create(&fixture->adapters, fixture->backend, &fixture->model, &fixture->clip->dimensions, &settings,
                         PARAMETERS_TRAINED, &error));
    struct tensor memory;
    must(tensor_take(&memory, &fixture->model, TENSOR_U8, "step state", 1, (size_t[]){sizeof *fixture->state}, &error));
    fixture->state = memory.data;
    must(tensor_take(&memory, &fixture->model, TENSOR_F32, "loss", 1, (size_t[]){1}, &error));
    fixture->loss = memory.data;
}

void fixture_open(struct fixture *fixture, const char *folder, const struct backend_settings *backend,
                  struct report *report)
{
    *fixture = (struct fixture){.folder = folder, .report = report};
    fixture->config = recorded_json(folder, "config.json");
    fixture->tolerances = json_object_get(fixture->config, "tolerances");
    must(backend_open(&fixture->backend, backend, &error));
    given_begin(&fixture->given, fixture->backend);
    if (fixture->backend->precision == PRECISION_BF16) {
        report->values_outside = BF16_VALUES_OUTSIDE;
        report->decisions_outside = BF16_DECISIONS_OUTSIDE;
    }
    must(fixture->backend->ops->arena_create(fixture->backend, &fixture->model, 0, "model", &error));
    must(fixture->backend->ops->arena_create(fixture->backend, &fixture->step, 0, "step", &error));
    open_models(fixture);
}

void fixture_close(struct fixture *fixture)
{
    adapters_destroy(fixture->adapters);
    clip_destroy(fixture->clip);
    if (fixture->backend != NULL) {
        fixture->backend->ops->arena_destroy(fixture->backend, &fixture->model);
        fixture->backend->ops->arena_destroy(fixture->backend, &fixture->step);
        given_end(&fixture->given);
        backend_close(fixture->backend);
    }
    json_decref(fixture->config);
}

void fixture_upload(struct fixture *fixture, const void *values, size_t count, void **device)
{
    struct tensor memory;
    must(tensor_take(&memory, &fixture->step, TENSOR_F32, "fixture values", 1, &count, &error));
    *device = memory.data;
    must(fixture->backend->ops->upload(fixture->backend, memory.data, values, 4 * count, &error));
}

static void upload_router(struct fixture *fixture, size_t batch, int task, const int32_t **router)
{
    int32_t *host = malloc(array_size(batch, sizeof *host));
    for (size_t b = 0; b < batch; b++)
        host[b] = task;
    void *device;
    fixture_upload(fixture, host, batch, &device);
    free(host);
    *router = device;
}

void fixture_encode(struct fixture *fixture, struct replay_pass *pass, const float *images, size_t image_count,
                    const int32_t *tokens, size_t text_count, int task, bool training, const float *const noise[TOWERS])
{
    size_t batches[TOWERS] = {image_count, text_count}, r = fixture->clip->dimensions.resolution;
    *pass = (struct replay_pass){0};
    for (int t = 0; t < TOWERS; t++) {
        pass->encoding[t] =
            (struct encoding){.arena = &fixture->step,
                              .training = training,
                              .hooks = task >= 0 ? adapters_hooks(fixture->adapters, (enum tower)t) : NULL,
                              .state = fixture->state};
        fixture->given.noise[t] = noise != NULL ? noise[t] : NULL;
        upload_router(fixture, batches[t], task, &pass->encoding[t].router);
    }
    struct tensor batch = {0};
    must(tensor_take(&batch, &fixture->step, TENSOR_F32, "images", 4, (size_t[]){image_count, 3, r, r}, &error));
    must(fixture->backend->ops->upload(fixture->backend, batch.data, images, tensor_bytes(&batch), &error));
    must(texts_create(&pass->texts, fixture->clip, &fixture->step, tokens, text_count, &error));
    must(clip_encode_images(fixture->clip, &pass->encoding[TOWER_IMAGE], &batch, &pass->passes[TOWER_IMAGE],
                            &pass->features[TOWER_IMAGE], &error));
    must(clip_encode_texts(fixture->clip, &pass->encoding[TOWER_TEXT], &pass->texts, &pass->passes[TOWER_TEXT],
                           &pass->features[TOWER_TEXT], &error));
}

void fixture_gates(const struct fixture *fixture, enum tower tower, size_t block, size_t batch, float **gates)
{
    const struct dispatch *dispatch = &fixture->adapters->towers[tower].passes[block].routed.dispatch;
    size_t top_k = dispatch->top_k, experts = dispatch->experts;
    int32_t *chosen = malloc(array_size(batch * top_k, sizeof *chosen));
    float *values = malloc(array_size(batch * top_k, sizeof *values));
    *gates = calloc(batch * experts, sizeof **gates);
    must(fixture->backend->ops->download(fixture->backend, chosen, dispatch->chosen, batch * top_k * sizeof *chosen,
                                         &error));
    must(fixture->backend->ops->download(fixture->backend, values, dispatch->gates, batch * top_k * sizeof *values,
                                         &error));
    for (size_t i = 0; i < batch * top_k; i++)
        (*gates)[i / top_k * experts + (size_t)chosen[i]] = values[i];
    free(chosen);
    free(values);
}

void fixture_compare_gates(struct fixture *fixture, const char *quantity, const float *got, const float *expected,
                           size_t batch, const char *where)
{
    size_t experts = fixture->adapters->settings.experts;
    char chosen[80];
    snprintf(chosen, sizeof chosen, "%s, chosen experts", quantity);
    report_values(fixture->report, quantity, got, expected, batch * experts, fixture_tolerance(fixture, "gates"));
    for (size_t b = 0; b < batch; b++) {
        bool equal = true;
        for (size_t e = 0; e < experts; e++)
            equal = equal && (got[b * experts + e] > 0) == (expected[b * experts + e] > 0);
        report_exact(fixture->report, chosen, equal, "%s, sample %zu", where, b);
    }
}
