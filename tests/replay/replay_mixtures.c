/* Replays folders in the format of fixtures/mixtures, one mixture layer each, in a tower of one block.
 *
 *     build/tests/replay_mixtures [--backend cpu|cuda|auto] FOLDER…
 *
 * Prints a line per tensor with the largest deviation and its tolerance, 2e-5 of the tensor's largest magnitude; exits with 0
 * only when all hold, with 77 when a folder is absent. A file or tensor that is not known, or damaged, is an error. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/experts/kind.h"
#include "adapters/routers/router.h"
#include "adapters/statistics.h"
#include "core/file.h"
#include "models/files/safetensors.h"
#include "tests/replay/given.h"
#include "tests/replay/report.h"

#define RELATIVE 2e-5

struct shape {
    size_t tokens, width, hidden, experts;
};

struct replay {
    const char *folder;
    json_t *config;
    struct shape n;
    struct backend *backend;
    struct arena arena;
    struct report report;
    /* of the file at hand */
    const char *name;
    struct safetensors *file;
    struct adapters *adapters;
    struct block_context context;
    struct given given;
    struct tensor x, gy, y, dx, dln2; /* [1, T, D] */
    float *loss;                      /* device, one value */
};

/* ---- What a folder holds ---- */

static status config_number(const struct replay *r, const char *section, const char *key, double *number,
                            struct error *error)
{
    const json_t *object = section != NULL ? json_object_get(r->config, section) : r->config,
                 *value = json_object_get(object, key);
    if (!json_is_number(value) || !(json_number_value(value) > 0))
        return error_set(error, ERROR_FORMAT, "%s/config.json: %s%s%s: expected a number above 0", r->folder,
                         section != NULL ? section : "", section != NULL ? "." : "", key);
    *number = json_number_value(value);
    return OK;
}

static status config_size(const struct replay *r, const char *section, const char *key, size_t *size,
                          struct error *error)
{
    double number;
    TRY(config_number(r, section, key, &number, error));
    *size = (size_t)number;
    return OK;
}

static status read_config(struct replay *r, struct error *error)
{
    json_error_t where;
    char *path = path_format("%s/config.json", r->folder);
    r->config = path != NULL ? json_load_file(path, 0, &where) : NULL;
    free(path);
    if (r->config == NULL)
        return error_set(error, ERROR_FORMAT, "%s/config.json: %s", r->folder, where.text);
    TRY(config_size(r, NULL, "tokens", &r->n.tokens, error));
    TRY(config_size(r, NULL, "width", &r->n.width, error));
    TRY(config_size(r, NULL, "hidden", &r->n.hidden, error));
    return config_size(r, NULL, "experts", &r->n.experts, error);
}

static size_t product(int rank, const size_t *shape)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    return n;
}

static status find(const struct replay *r, const char *name, enum safetensor_type type, int rank, const size_t *shape,
                   const void **values, struct error *error)
{
    const struct safetensor *tensor;
    TRY(safetensors_expect(r->file, name, type, rank, shape, &tensor, error));
    *values = tensor->data;
    return type == SAFETENSOR_F32
               ? safetensors_expect_finite(r->file, name, tensor->data, safetensor_elements(tensor), error)
               : OK;
}

/* ---- Comparing ---- */

static status compare(struct replay *r, const char *name, const float *found, int rank, const size_t *shape,
                      struct error *error)
{
    char line[64];
    const void *expected;
    size_t n = product(rank, shape);
    double largest = 0;
    TRY(find(r, name, SAFETENSOR_F32, rank, shape, &expected, error));
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)((const float *)expected)[i]));
    snprintf(line, sizeof line, "%s %s", r->name, name);
    report_values(&r->report, line, found, expected, n, RELATIVE * largest);
    return OK;
}

static status compare_device(struct replay *r, const char *name, const float *device, int rank, const size_t *shape,
                             struct error *error)
{
    size_t n = product(rank, shape);
    float *found = malloc(array_size(n, sizeof *found));
    status result = found != NULL ? OK : error_set(error, ERROR_MEMORY, "no memory for %s", name);
    NEXT(result, r->backend->ops->download(r->backend, found, device, n * sizeof *found, error));
    NEXT(result, compare(r, name, found, rank, shape, error));
    free(found);
    return result;
}

static status compare_rows(struct replay *r, const char *name, const struct tensor *rows, struct error *error)
{
    return compare_device(r, name, rows->data, 2, (size_t[]){r->n.tokens, r->n.width}, error);
}

/* The four tensors of the experts, or of one of them, as prefix + w1, b1, w2, b2. */
static status compare_experts(struct replay *r, const char *prefix, const float *const parts[EXPERT_PARTS],
                              bool stacked, struct error *error)
{
    static const char *const names[EXPERT_PARTS] = {"w1", "b1", "w2", "b2"};
    const size_t e = r->n.experts, d = r->n.width, m = r->n.hidden,
                 shapes[EXPERT_PARTS][3] = {{e, m, d}, {e, m}, {e, d, m}, {e, d}};
    for (int i = 0; i < EXPERT_PARTS; i++) {
        char name[32];
        int rank = (i % 2 == 0 ? 3 : 2) - !stacked;
        snprintf(name, sizeof name, "%s%s", prefix, names[i]);
        TRY(compare_device(r, name, parts[i], rank, shapes[i] + !stacked, error));
    }
    return OK;
}

static void parts_of(const struct replay *r, const float *values, const float *parts[EXPERT_PARTS])
{
    const struct adapter_tower *tower = &r->adapters->towers[TOWER_IMAGE];
    const struct expert_bank *bank = &tower->banks[0];
    const size_t numbers[EXPERT_PARTS] = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias};
    for (int i = 0; i < EXPERT_PARTS; i++)
        parts[i] = values + tower->parameters->list[numbers[i]].offset;
}

/* ---- A layer, forward and back ---- */

static status upload(struct replay *r, const char *name, enum safetensor_type type, int rank, const size_t *shape,
                     void **device, struct error *error)
{
    const void *values;
    struct tensor memory;
    size_t n = product(rank, shape);
    TRY(find(r, name, type, rank, shape, &values, error));
    TRY(tensor_take(&memory, &r->arena, type == SAFETENSOR_I32 ? TENSOR_I32 : TENSOR_F32, "fixture", 1, &n, error));
    *device = memory.data;
    return r->backend->ops->upload(r->backend, memory.data, values, tensor_bytes(&memory), error);
}

/* A stack of experts, or a router's only matrix [1, D, E], which the file has without its first axis. */
static status upload_parameter(struct replay *r, const char *name, size_t index, bool router, struct error *error)
{
    struct parameters *group = r->adapters->towers[TOWER_IMAGE].parameters;
    const struct parameter *p = &group->list[index];
    const void *values;
    TRY(find(r, name, SAFETENSOR_F32, p->rank - router, p->shape + router, &values, error));
    return parameters_upload(group, p, values, error);
}

static status take_rows(struct replay *r, struct tensor *rows, struct error *error)
{
    TRY(tensor_take(rows, &r->arena, TENSOR_F32, "rows", 3, (size_t[]){1, r->n.tokens, r->n.width}, error));
    return r->backend->ops->zero(r->backend, rows->data, tensor_bytes(rows), error);
}

static status upload_rows(struct replay *r, const char *name, struct tensor *rows, struct error *error)
{
    const void *values;
    TRY(take_rows(r, rows, error));
    TRY(find(r, name, SAFETENSOR_F32, 2, (size_t[]){r->n.tokens, r->n.width}, &values, error));
    return r->backend->ops->upload(r->backend, rows->data, values, tensor_bytes(rows), error);
}

static status open_site(struct replay *r, struct error *error)
{
    struct tensor router, state, loss;
    TRY(tensor_take(&router, &r->arena, TENSOR_I32, "router", 1, (size_t[]){1}, error));
    TRY(tensor_take(&state, &r->arena, TENSOR_U8, "step state", 1, (size_t[]){sizeof(struct step_state)}, error));
    TRY(tensor_take(&loss, &r->arena, TENSOR_F32, "loss", 1, (size_t[]){1}, error));
    TRY(r->backend->ops->zero(r->backend, router.data, tensor_bytes(&router), error));
    TRY(r->backend->ops->zero(r->backend, state.data, tensor_bytes(&state), error));
    TRY(r->backend->ops->zero(r->backend, loss.data, tensor_bytes(&loss), error));
    r->loss = loss.data;
    r->context = (struct block_context){.backend = r->backend,
                                        .arena = &r->arena,
                                        .tower = TOWER_IMAGE,
                                        .training = true,
                                        .router = router.data,
                                        .state = state.data};
    return OK;
}

/* Adapters of the file's weights; router: the name of its matrix, NULL: it has none. */
static status open_layer(struct replay *r, struct adapter_settings settings, const char *router, struct error *error)
{
    static const char *const names[EXPERT_PARTS] = {"w1", "b1", "w2", "b2"};
    const struct clip_dimensions dimensions = {.image_width = r->n.width,
                                               .image_hidden = r->n.hidden,
                                               .image_blocks = 1,
                                               .text_width = r->n.width,
                                               .text_hidden = r->n.hidden,
                                               .text_blocks = 1};
    settings.kind = &expert_ffn;
    settings.activation = ACTIVATION_GELU;
    settings.routing = ROUTING_PER_TOKEN;
    settings.experts = r->n.experts;
    settings.tasks = 1;
    settings.place.towers = ADAPT_IMAGE;
    expert_ffn.settle(&settings);
    adapters_destroy(r->adapters);
    r->adapters = NULL;
    TRY(adapters_create(&r->adapters, r->backend, &r->arena, &dimensions, &settings, PARAMETERS_TRAINED, error));
    const struct expert_bank *bank = &r->adapters->towers[TOWER_IMAGE].banks[0];
    const size_t numbers[EXPERT_PARTS] = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias};
    for (int i = 0; i < EXPERT_PARTS; i++)
        TRY(upload_parameter(r, names[i], numbers[i], false, error));
    if (router != NULL)
        TRY(upload_parameter(r, router, bank->routers, true, error));
    TRY(open_site(r, error));
    adapters_add_loss(r->adapters, r->loss, NULL, 1.0f);
    return adapters_begin_task(r->adapters, 0, error);
}

/* y [T, D], and the gradients: of x in dx. What decides and what experts read is the same. */
static status run_layer(struct replay *r, struct error *error)
{
    const struct block_hook *hook = adapters_hooks(r->adapters, TOWER_IMAGE);
    TRY(upload_rows(r, "x", &r->x, error));
    TRY(upload_rows(r, "gy", &r->gy, error));
    TRY(take_rows(r, &r->y, error));
    TRY(take_rows(r, &r->dx, error));
    TRY(take_rows(r, &r->dln2, error));
    TRY(hook->forward(hook->state, &r->context, &r->x, &r->x, &r->y, error));
    TRY(hook->backward(hook->state, &r->context, &r->x, &r->x, &r->gy, &r->dx, &r->dln2, error));
    return r->backend->ops->weighted_sum(r->backend,
                                         &(struct weighted_sum){.count = 2,
                                                                .n = tensor_elements(&r->dx),
                                                                .inputs = {r->dx.data, r->dln2.data},
                                                                .weights = {1, 1},
                                                                .out = r->dx.data},
                                         error);
}

static status compare_gradients(struct replay *r, struct error *error)
{
    const float *parts[EXPERT_PARTS];
    parts_of(r, r->adapters->towers[TOWER_IMAGE].parameters->gradients, parts);
    return compare_experts(r, "g_", parts, true, error);
}

static status compare_router_gradient(struct replay *r, const char *name, struct error *error)
{
    const struct adapter_tower *tower = &r->adapters->towers[TOWER_IMAGE];
    const float *gradient = parameters_weight(tower->parameters, tower->banks[0].routers).gradient;
    return compare_device(r, name, gradient, 2, (size_t[]){r->n.width, r->n.experts}, error);
}

static status compare_balance(struct replay *r, double weight, struct error *error)
{
    float loss;
    TRY(r->backend->ops->download(r->backend, &loss, r->loss, sizeof loss, error));
    loss = (float)((double)loss / weight);
    return compare(r, "balance", &loss, 1, (size_t[]){1}, error);
}

/* Numbers of the layer's choices, on the host. */
static status read_choices(const struct replay *r, const int32_t *device, int32_t **values, struct error *error)
{
    const struct dispatch *d = &r->adapters->towers[TOWER_IMAGE].passes[0].routed.dispatch;
    size_t n = d->samples * d->top_k;
    *values = malloc(array_size(n, sizeof **values));
    if (*values == NULL)
        return error_set(error, ERROR_MEMORY, "no memory for %zu choices", n);
    return r->backend->ops->download(r->backend, *values, device, n * sizeof **values, error);
}

/* ---- The three files ---- */

static status compare_average(struct replay *r, struct error *error)
{
    double beta;
    char rate[32];
    const struct merge_policy *policy;
    struct options *options = NULL;
    const float *parts[EXPERT_PARTS];
    TRY(config_number(r, NULL, "ewa_beta", &beta, error));
    snprintf(rate, sizeof rate, "%.17g", beta);
    TRY(merge_policy_find(&policy, "ewa", error));
    status result = options_create(&options, policy->options, error);
    NEXT(result, options_set(options, "rate", rate, "config.json", error));
    NEXT(result, options_set(options, "ramp", "constant", "replay", error));
    NEXT(result, policy->after_step(r->adapters,
                                    &(struct merge_call){.iteration = 1, .iterations = 1, .options = options}, error));
    options_destroy(options);
    TRY(result);
    parts_of(r, r->adapters->towers[TOWER_IMAGE].parameters->values, parts);
    return compare_experts(r, "avg_", parts, true, error);
}

/* What answers after training. */
static status compare_dense(struct replay *r, struct error *error)
{
    float *mean[EXPERT_PARTS];
    const float *parts[EXPERT_PARTS];
    TRY(adapters_mean(r->adapters, TOWER_IMAGE, 0, mean, error));
    for (int i = 0; i < EXPERT_PARTS; i++)
        parts[i] = mean[i];
    return compare_experts(r, "dense_", parts, false, error);
}

static status replay_ewa(struct replay *r, struct error *error)
{
    void *owner;
    TRY(open_layer(r, (struct adapter_settings){.router = &router_random_uniform, .top_k = 1}, NULL, error));
    TRY(upload(r, "owner", SAFETENSOR_I32, 1, &r->n.tokens, &owner, error));
    r->given.owner = owner;
    TRY(run_layer(r, error));
    TRY(compare_rows(r, "y", &r->y, error));
    TRY(compare_rows(r, "gx", &r->dx, error));
    TRY(compare_gradients(r, error));
    TRY(compare_dense(r, error));
    return compare_average(r, error);
}

/* kept [T, E]: 1 where a token reached an expert. */
static status compare_kept(struct replay *r, struct error *error)
{
    const struct dispatch *d = &r->adapters->towers[TOWER_IMAGE].passes[0].routed.dispatch;
    const size_t shape[] = {r->n.tokens, r->n.experts};
    int32_t *chosen = NULL, *slot = NULL;
    float *kept = calloc(r->n.tokens, r->n.experts * sizeof *kept);
    status result = kept != NULL ? OK : error_set(error, ERROR_MEMORY, "no memory for %zu tokens", r->n.tokens);
    NEXT(result, read_choices(r, d->chosen, &chosen, error));
    NEXT(result, read_choices(r, d->slot, &slot, error));
    for (size_t i = 0; result == OK && i < d->samples * d->top_k; i++)
        if (chosen[i] >= 0 && slot[i] >= 0)
            kept[i / d->top_k * r->n.experts + (size_t)chosen[i]] = 1;
    NEXT(result, compare(r, "kept", kept, 2, shape, error));
    free(kept);
    free(slot);
    free(chosen);
    return result;
}

static status replay_widenet(struct replay *r, struct error *error)
{
    struct adapter_settings settings = {
        .router = &router_softmax_topk, .router_noise = 1, .balance = BALANCE_LOSS_WIDENET};
    const size_t shape[] = {r->n.tokens, r->n.experts};
    size_t limit;
    double weight;
    void *noise;
    TRY(config_size(r, "widenet", "topk", &settings.top_k, error));
    TRY(config_size(r, "widenet", "limit", &limit, error));
    TRY(config_number(r, "widenet", "balance_weight", &weight, error));
    settings.capacity = (double)(limit * r->n.experts) / (double)(settings.top_k * r->n.tokens);
    settings.balance_weight = (float)weight;
    TRY(open_layer(r, settings, "wf", error));
    TRY(upload(r, "noise", SAFETENSOR_F32, 2, shape, &noise, error));
    r->given.noise[TOWER_IMAGE] = noise;
    TRY(run_layer(r, error));
    TRY(compare_rows(r, "y", &r->y, error));
    TRY(compare_device(r, "prob", r->adapters->towers[TOWER_IMAGE].passes[0].kept[SOFTMAX_PROBABILITIES], 2, shape,
                       error));
    TRY(compare_kept(r, error));
    TRY(compare_balance(r, weight, error));
    TRY(compare_rows(r, "gx", &r->dx, error));
    TRY(compare_router_gradient(r, "g_wf", error));
    return compare_gradients(r, error);
}

static status compare_top(struct replay *r, size_t top_k, struct error *error)
{
    const void *expected;
    int32_t *chosen = NULL;
    const size_t shape[] = {r->n.tokens, top_k};
    TRY(find(r, "top", SAFETENSOR_I32, top_k == 1 ? 1 : 2, shape, &expected, error));
    status result = read_choices(r, r->adapters->towers[TOWER_IMAGE].passes[0].routed.dispatch.chosen, &chosen, error);
    for (size_t i = 0; result == OK && i < r->n.tokens * top_k; i++)
        report_exact(&r->report, "rmoe top", chosen[i] == ((const int32_t *)expected)[i],
                     "choice %zu is expert %d, expected %d", i, chosen[i], ((const int32_t *)expected)[i]);
    free(chosen);
    return result;
}

static status replay_rmoe(struct replay *r, struct error *error)
{
    struct adapter_settings settings = {.router = &router_softmax_topk};
    double weight;
    TRY(config_size(r, "rmoe", "topk", &settings.top_k, error));
    TRY(config_number(r, "rmoe", "balance_weight", &weight, error));
    TRY(open_layer(r, settings, "wg", error));
    TRY(run_layer(r, error));
    TRY(compare_top(r, settings.top_k, error));
    TRY(compare_rows(r, "y_plain", &r->y, error));
    TRY(compare_rows(r, "gx_plain", &r->dx, error));
    TRY(compare_router_gradient(r, "g_wg_plain", error));
    settings.aligned_output = ALIGN_EACH; /* Equation 7 */
    settings.balance = BALANCE_LOSS_RMOE;
    settings.balance_weight = (float)weight;
    TRY(open_layer(r, settings, "wg", error));
    TRY(run_layer(r, error));
    TRY(compare_rows(r, "y_aligned", &r->y, error));
    TRY(compare_balance(r, weight, error));
    TRY(compare_rows(r, "gx_aligned", &r->dx, error));
    TRY(compare_router_gradient(r, "g_wg_aligned", error));
    return compare_gradients(r, error);
}

/* ---- Folders ---- */

static const struct layer {
    const char *name;
    status (*replay)(struct replay *r, struct error *error);
    const char *tensors; /* all that its file has, between spaces */
} layers[] = {
    {"ewa", replay_ewa,
     " x y gy gx owner w1 b1 w2 b2 g_w1 g_b1 g_w2 g_b2 avg_w1 avg_b1 avg_w2 avg_b2 dense_w1 dense_b1 dense_w2 "
     "dense_b2 "},
    {"widenet", replay_widenet, " x y gy gx w1 b1 w2 b2 g_w1 g_b1 g_w2 g_b2 wf g_wf noise prob kept balance "},
    {"rmoe", replay_rmoe,
     " x y_plain y_aligned gy gx_plain gx_aligned w1 b1 w2 b2 g_w1 g_b1 g_w2 g_b2 wg g_wg_plain g_wg_aligned top "
     "balance "},
};
enum { LAYERS = sizeof layers / sizeof *layers };

static status check_names(const struct replay *r, const struct layer *layer, struct error *error)
{
    for (size_t i = 0; i < safetensors_count(r->file); i++) {
        char name[128];
        snprintf(name, sizeof name, " %s ", safetensors_at(r->file, i)->name);
        if (strstr(layer->tensors, name) == NULL)
            return error_set(error, ERROR_FORMAT, "%s: nobody compares tensor %s", safetensors_path(r->file),
                             safetensors_at(r->file, i)->name);
    }
    return OK;
}

static status replay_file(struct replay *r, const struct layer *layer, const char *file, struct error *error)
{
    char *path = path_format("%s/%s", r->folder, file);
    status result = path != NULL ? OK : error_set(error, ERROR_MEMORY, "no memory for a path");
    r->name = layer->name;
    r->given.noise[TOWER_IMAGE] = NULL;
    r->given.owner = NULL;
    NEXT(result, safetensors_open(&r->file, path, error));
    NEXT(result, check_names(r, layer, error));
    NEXT(result, layer->replay(r, error));
    safetensors_close(r->file);
    r->file = NULL;
    free(path);
    return result;
}

/* The layer of a file; NULL: it is none, and may be there all the same. */
static status layer_of(const struct replay *r, const char *file, const struct layer **layer, struct error *error)
{
    *layer = NULL;
    if (strcmp(file, "config.json") == 0 || strcmp(file, "README.md") == 0)
        return OK;
    for (size_t i = 0; i < LAYERS; i++) {
        size_t length = strlen(layers[i].name);
        if (strncmp(file, layers[i].name, length) == 0 && strcmp(file + length, ".safetensors") == 0)
            *layer = &layers[i];
    }
    return *layer != NULL ? OK
                          : error_set(error, ERROR_FORMAT,
                                      "%s/%s: expected ewa, widenet or rmoe.safetensors, config.json or README.md",
                                      r->folder, file);
}

static status replay_files(struct replay *r, struct error *error)
{
    struct directory directory;
    const struct layer *layer;
    TRY(read_config(r, error));
    TRY(directory_list(&directory, r->folder, error));
    status result = OK;
    for (size_t i = 0; result == OK && i < directory.count; i++) {
        result = layer_of(r, directory.names[i], &layer, error);
        if (result == OK && layer != NULL)
            result = replay_file(r, layer, directory.names[i], error);
    }
    directory_free(&directory);
    return result;
}

static status replay(const char *folder, const struct backend_settings *settings, bool *good, struct error *error)
{
    struct replay r = {.folder = folder, .report.folder = folder};
    status result = backend_open(&r.backend, settings, error);
    NEXT(result, r.backend->ops->arena_create(r.backend, &r.arena, 0, "replay", error));
    if (result == OK) {
        given_begin(&r.given, r.backend);
        result = replay_files(&r, error);
        adapters_destroy(r.adapters);
        given_end(&r.given);
        r.backend->ops->arena_destroy(r.backend, &r.arena);
    }
    *good = report_finish(&r.report);
    json_decref(r.config);
    backend_close(r.backend);
    return result;
}

int main(int argc, char **argv)
{
    struct backend_settings backend = {.name = "auto"};
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--backend") == 0) {
        backend.name = argv[2];
        first = 3;
    }
    if (first >= argc || strncmp(argv[first], "--", 2) == 0) {
        fprintf(stderr, "usage: replay_mixtures [--backend cpu|cuda|auto] FOLDER...\n");
        return 2;
    }
    return replay_folders(argv + first, argc - first, &backend, replay);
}
