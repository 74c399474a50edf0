#include "tests/replay/fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/experts/expert.h"
#include "core/file.h"

double fixture_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) {
        fprintf(stderr, "config.json: no number \"%s\"\n", key);
        abort();
    }
    return json_number_value(value);
}

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
    return fixture_number(fixture->tolerances, key);
}

static status load_config(struct fixture *fixture, struct error *error)
{
    json_error_t where;
    char *path = path_format("%s/config.json", fixture->folder);
    fixture->config = json_load_file(path, 0, &where);
    free(path);
    if (fixture->config == NULL)
        return error_set(error, ERROR_FORMAT, "%s/config.json:%d: %s", fixture->folder, where.line, where.text);
    fixture->tolerances = json_object_get(fixture->config, "tolerances");
    return OK;
}

static status open_models(struct fixture *fixture, struct error *error)
{
    const json_t *config = fixture->config;
    struct adapter_settings settings = {.experts = (size_t)fixture_number(config, "E"),
                                        .top_k = (size_t)fixture_number(config, "topk"),
                                        .tasks = (size_t)fixture_number(config, "routers"),
                                        .bottleneck = (size_t)fixture_number(config, "bottleneck"),
                                        .scale = (float)fixture_number(config, "scale"),
                                        .dropout = (float)fixture_number(config, "dropout"),
                                        .noise_epsilon = (float)fixture_number(config, "noise_epsilon")};
    const json_t *sizes = json_object_get(config, "dims");
    struct clip_stated stated = {.config = {.image_heads = (size_t)fixture_number(sizes, "vision_heads"),
                                            .text_heads = (size_t)fixture_number(sizes, "text_heads"),
                                            .activation = ACTIVATION_QUICK_GELU},
                                 .heads_by = "the fixture",
                                 .activation_by = "the fixture"};
    char *path = path_format("%s/clip.safetensors", fixture->folder);
    status result =
        clip_load(&fixture->clip, fixture->backend, &fixture->model, path, PARAMETERS_FROZEN, &stated, error);
    free(path);
    TRY(result);
    TRY(adapters_create(&fixture->adapters, fixture->backend, &fixture->model, &fixture->clip->dimensions, &settings,
                        PARAMETERS_TRAINED, error));
    struct tensor memory;
    TRY(tensor_take(&memory, &fixture->model, TENSOR_U8, "step state", 1, (size_t[]){sizeof *fixture->state}, error));
    fixture->state = memory.data;
    TRY(tensor_take(&memory, &fixture->model, TENSOR_F32, "loss", 1, (size_t[]){1}, error));
    fixture->loss = memory.data;
    return OK;
}

status fixture_open(struct fixture *fixture, const char *folder, const struct backend_settings *backend,
                    struct report *report, struct error *error)
{
    *fixture = (struct fixture){.folder = folder, .report = report};
    TRY(load_config(fixture, error));
    TRY(backend_open(&fixture->backend, backend, error));
    given_begin(&fixture->given, fixture->backend);
    if (fixture->backend->precision == PRECISION_BF16) {
        report->values_outside = BF16_VALUES_OUTSIDE;
        report->decisions_outside = BF16_DECISIONS_OUTSIDE;
    }
    TRY(fixture->backend->ops->arena_create(fixture->backend, &fixture->model, 0, "model", error));
    TRY(fixture->backend->ops->arena_create(fixture->backend, &fixture->step, 0, "step", error));
    return open_models(fixture, error);
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

status fixture_tensors(const struct fixture *fixture, const char *name, struct safetensors **file, struct error *error)
{
    char *path = path_format("%s/%s", fixture->folder, name);
    status result = safetensors_open(file, path, error);
    free(path);
    return result;
}

status fixture_find(const struct safetensors *file, const struct safetensor **tensor, struct error *error,
                    const char *name, ...)
{
    char full[192];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(full, sizeof full, name, arguments);
    va_end(arguments);
    *tensor = safetensors_find(file, full);
    return *tensor != NULL ? OK
                           : error_set(error, ERROR_FORMAT, "%s: tensor %s is missing", safetensors_path(file), full);
}

status fixture_upload(struct fixture *fixture, const void *values, size_t count, void **device, struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, &fixture->step, TENSOR_F32, "fixture values", 1, &count, error));
    *device = memory.data;
    return fixture->backend->ops->upload(fixture->backend, memory.data, values, 4 * count, error);
}

static status upload_router(struct fixture *fixture, size_t batch, int task, const int32_t **router,
                            struct error *error)
{
    int32_t *host = malloc(array_size(batch, sizeof *host));
    for (size_t b = 0; b < batch; b++)
        host[b] = task;
    void *device;
    status result = fixture_upload(fixture, host, batch, &device, error);
    free(host);
    *router = device;
    return result;
}

status fixture_encode(struct fixture *fixture, struct replay_pass *pass, const float *images, size_t image_count,
                      const int32_t *tokens, size_t text_count, int task, bool training,
                      const float *const noise[TOWERS], struct error *error)
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
        TRY(upload_router(fixture, batches[t], task, &pass->encoding[t].router, error));
    }
    struct tensor batch = {0};
    TRY(tensor_take(&batch, &fixture->step, TENSOR_F32, "images", 4, (size_t[]){image_count, 3, r, r}, error));
    TRY(fixture->backend->ops->upload(fixture->backend, batch.data, images, tensor_bytes(&batch), error));
    TRY(texts_create(&pass->texts, fixture->clip, &fixture->step, tokens, text_count, error));
    TRY(clip_encode_images(fixture->clip, &pass->encoding[TOWER_IMAGE], &batch, &pass->passes[TOWER_IMAGE],
                           &pass->features[TOWER_IMAGE], error));
    return clip_encode_texts(fixture->clip, &pass->encoding[TOWER_TEXT], &pass->texts, &pass->passes[TOWER_TEXT],
                             &pass->features[TOWER_TEXT], error);
}

status fixture_gates(const struct fixture *fixture, enum tower tower, size_t block, size_t batch, float **gates,
                     struct error *error)
{
    const struct dispatch *dispatch = &fixture->adapters->towers[tower].passes[block].routed.dispatch;
    size_t top_k = dispatch->top_k, experts = dispatch->experts;
    int32_t *chosen = malloc(array_size(batch * top_k, sizeof *chosen));
    float *values = malloc(array_size(batch * top_k, sizeof *values));
    *gates = calloc(batch * experts, sizeof **gates);
    status result = fixture->backend->ops->download(fixture->backend, chosen, dispatch->chosen,
                                                    batch * top_k * sizeof *chosen, error);
    if (result == OK)
        result = fixture->backend->ops->download(fixture->backend, values, dispatch->gates,
                                                 batch * top_k * sizeof *values, error);
    for (size_t i = 0; result == OK && i < batch * top_k; i++)
        (*gates)[i / top_k * experts + (size_t)chosen[i]] = values[i];
    free(chosen);
    free(values);
    return result;
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
