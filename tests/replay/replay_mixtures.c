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
#include "core/alloc.h"
#include "core/file.h"
#include "models/files/safetensors.h"
#include "tests/replay/given.h"
#include "tests/replay/recorded.h"
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

static double config_number(const struct replay *r, const char *section, const char *key)
{
    const json_t *object = section != NULL ? json_object_get(r->config, section) : r->config,
                 *value = json_object_get(object, key);
    if (!json_is_number(value) || !(json_number_value(value) > 0))
        must(error_set(&error, ERROR_FORMAT, "%s/config.json: %s%s%s: expected a number above 0", r->folder,
                       section != NULL ? section : "", section != NULL ? "." : "", key));
    return json_number_value(value);
}

static size_t config_size(const struct replay *r, const char *section, const char *key)
{
    return (size_t)config_number(r, section, key);
}

static void read_config(struct replay *r)
{
    r->config = recorded_json(r->folder, "config.json");
    r->n.tokens = config_size(r, NULL, "tokens");
    r->n.width = config_size(r, NULL, "width");
    r->n.hidden = config_size(r, NULL, "hidden");
    r->n.experts = config_size(r, NULL, "experts");
}

static size_t product(int rank, const size_t *shape)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= shape[i];
    return n;
}

static void find(const struct replay *r, const char *name, enum safetensor_type type, int rank, const size_t *shape,
                 const void **values)
{
    const struct safetensor *tensor;
    must(safetensors_expect(r->file, name, type, rank, shape, &tensor, &error));
    *values = tensor->data;
    must(type == SAFETENSOR_F32
             ? safetensors_expect_finite(r->file, name, tensor->data, safetensor_elements(tensor), &error)
             : OK);
}

/* ---- Comparing ---- */

static void compare(struct replay *r, const char *name, const float *found, int rank, const size_t *shape)
{
    char line[64];
    const void *expected;
    size_t n = product(rank, shape);
    double largest = 0;
    find(r, name, SAFETENSOR_F32, rank, shape, &expected);
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)((const float *)expected)[i]));
    snprintf(line, sizeof line, "%s %s", r->name, name);
    report_values(&r->report, line, found, expected, n, RELATIVE * largest);
}

static void compare_device(struct replay *r, const char *name, const float *device, int rank, const size_t *shape)
{
    size_t n = product(rank, shape);
    float *found = xmalloc(array_size(n, sizeof *found));
    must(r->backend->ops->download(r->backend, found, device, n * sizeof *found, &error));
    compare(r, name, found, rank, shape);
    free(found);
}

static void compare_rows(struct replay *r, const char *name, const struct tensor *rows)
{
    compare_device(r, name, rows->data, 2, (size_t[]){r->n.tokens, r->n.width});
}

/* The four tensors of the experts, or of one of them, as prefix + w1, b1, w2, b2. */
static void compare_experts(struct replay *r, const char *prefix, const float *const parts[EXPERT_PARTS], bool stacked)
{
    static const char *const names[EXPERT_PARTS] = {"w1", "b1", "w2", "b2"};
    const size_t e = r->n.experts, d = r->n.width, m = r->n.hidden,
                 shapes[EXPERT_PARTS][3] = {{e, m, d}, {e, m}, {e, d, m}, {e, d}};
    for (int i = 0; i < EXPERT_PARTS; i++) {
        char name[32];
        int rank = (i % 2 == 0 ? 3 : 2) - !stacked;
        snprintf(name, sizeof name, "%s%s", prefix, names[i]);
        compare_device(r, name, parts[i], rank, shapes[i] + !stacked);
    }
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

static void upload(struct replay *r, const char *name, enum safetensor_type type, int rank, const size_t *shape,
                   void **device)
{
    const void *values;
    struct tensor memory;
    size_t n = product(rank, shape);
    find(r, name, type, rank, shape, &values);
    must(tensor_take(&memory, &r->arena, type == SAFETENSOR_I32 ? TENSOR_I32 : TENSOR_F32, "fixture", 1, &n, &error));
    *device = memory.data;
    must(r->backend->ops->upload(r->backend, memory.data, values, tensor_bytes(&memory), &error));
}

/* A stack of experts, or a router's only matrix [1, D, E], which the file has without its first axis. */
static void upload_parameter(struct replay *r, const char *name, size_t index, bool router)
{
    struct parameters *group = r->adapters->towers[TOWER_IMAGE].parameters;
    const struct parameter *p = &group->list[index];
    const void *values;
    find(r, name, SAFETENSOR_F32, p->rank - router, p->shape + router, &values);
    must(parameters_upload(group, p, values, &error));
}

static void take_rows(struct replay *r, struct tensor *rows)
{
    must(tensor_take(rows, &r->arena, TENSOR_F32, "rows", 3, (size_t[]){1, r->n.tokens, r->n.width}, &error));
    must(r->backend->ops->zero(r->backend, rows->data, tensor_bytes(rows), &error));
}

static void upload_rows(struct replay *r, const char *name, struct tensor *rows)
{
    const void *values;
    take_rows(r, rows);
    find(r, name, SAFETENSOR_F32, 2, (size_t[]){r->n.tokens, r->n.width}, &values);
    must(r->backend->ops->upload(r->backend, rows->data, values, tensor_bytes(rows), &error));
}

static void open_site(struct replay *r)
{
    struct tensor router, state, loss;
    must(tensor_take(&router, &r->arena, TENSOR_I32, "router", 1, (size_t[]){1}, &error));
    must(tensor_take(&state, &r->arena, TENSOR_U8, "step state", 1, (size_t[]){sizeof(struct step_state)}, &error));
    must(tensor_take(&loss, &r->arena, TENSOR_F32, "loss", 1, (size_t[]){1}, &error));
    must(r->backend->ops->zero(r->backend, router.data, tensor_bytes(&router), &error));
    must(r->backend->ops->zero(r->backend, state.data, tensor_bytes(&state), &error));
    must(r->backend->ops->zero(r->backend, loss.data, tensor_bytes(&loss), &error));
    r->loss = loss.data;
    r->context = (struct block_context){.backend = r->backend,
                                        .arena = &r->arena,
                                        .tower = TOWER_IMAGE,
                                        .training = true,
                                        .router = router.data,
                                        .state = state.data};
}

/* Adapters of the file's weights; router: the name of its matrix, NULL: it has none. */
static void open_layer(struct replay *r, struct adapter_settings settings, const char *router)
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
    must(adapters_create(&r->adapters, r->backend, &r->arena, &dimensions, &settings, PARAMETERS_TRAINED, &error));
    const struct expert_bank *bank = &r->adapters->towers[TOWER_IMAGE].banks[0];
    const size_t numbers[EXPERT_PARTS] = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias};
    for (int i = 0; i < EXPERT_PARTS; i++)
        upload_parameter(r, names[i], numbers[i], false);
    if (router != NULL)
        upload_parameter(r, router, bank->routers, true);
    open_site(r);
    adapters_add_loss(r->adapters, r->loss, NULL, 1.0f);
    must(adapters_begin_task(r->adapters, 0, &error));
}

/* y [T, D], and the gradients: of x in dx. What decides and what experts read is the same. */
static void run_layer(struct replay *r)
{
    const struct block_hook *hook = adapters_hooks(r->adapters, TOWER_IMAGE);
    upload_rows(r, "x", &r->x);
    upload_rows(r, "gy", &r->gy);
    take_rows(r, &r->y);
    take_rows(r, &r->dx);
    take_rows(r, &r->dln2);
    must(hook->forward(hook->state, &r->context, &r->x, &r->x, &r->y, &error));
    must(hook->backward(hook->state, &r->context, &r->x, &r->x, &r->gy, &r->dx, &r->dln2, &error));
    must(r->backend->ops->weighted_sum(r->backend,
                                       &(struct weighted_sum){.count = 2,
                                                              .n = tensor_elements(&r->dx),
                                                              .inputs = {r->dx.data, r->dln2.data},
                                                              .weights = {1, 1},
                                                              .out = r->dx.data},
                                       &error));
}

static void compare_gradients(struct replay *r)
{
    const float *parts[EXPERT_PARTS];
    parts_of(r, r->adapters->towers[TOWER_IMAGE].parameters->gradients, parts);
    compare_experts(r, "g_", parts, true);
}

static void compare_router_gradient(struct replay *r, const char *name)
{
    const struct adapter_tower *tower = &r->adapters->towers[TOWER_IMAGE];
    const float *gradient = parameters_weight(tower->parameters, tower->banks[0].routers).gradient;
    compare_device(r, name, gradient, 2, (size_t[]){r->n.width, r->n.experts});
}

static void compare_balance(struct replay *r, double weight)
{
    float loss;
    must(r->backend->ops->download(r->backend, &loss, r->loss, sizeof loss, &error));
    loss = (float)((double)loss / weight);
    compare(r, "balance", &loss, 1, (size_t[]){1});
}

/* Numbers of the layer's choices, on the host. */
static void read_choices(const struct replay *r, const int32_t *device, int32_t **values)
{
    const struct dispatch *d = &r->adapters->towers[TOWER_IMAGE].passes[0].routed.dispatch;
    size_t n = d->samples * d->top_k;
    *values = xmalloc(array_size(n, sizeof **values));
    must(r->backend->ops->download(r->backend, *values, device, n * sizeof **values, &error));
}

/* ---- The three files ---- */

static void compare_average(struct replay *r)
{
    double beta;
    char rate[32];
    const struct merge_policy *policy;
    struct options *options = NULL;
    const float *parts[EXPERT_PARTS];
    beta = config_number(r, NULL, "ewa_beta");
    snprintf(rate, sizeof rate, "%.17g", beta);
    must(merge_policy_find(&policy, "ewa", &error));
    must(options_create(&options, policy->options, &error));
    must(options_set(options, "rate", rate, "config.json", &error));
    must(options_set(options, "ramp", "constant", "replay", &error));
    must(policy->after_step(r->adapters, &(struct merge_call){.iteration = 1, .iterations = 1, .options = options},
                            &error));
    options_destroy(options);
    parts_of(r, r->adapters->towers[TOWER_IMAGE].parameters->values, parts);
    compare_experts(r, "avg_", parts, true);
}

/* What answers after training. */
static void compare_dense(struct replay *r)
{
    float *mean[EXPERT_PARTS];
    const float *parts[EXPERT_PARTS];
    must(adapters_mean(r->adapters, TOWER_IMAGE, 0, mean, &error));
    for (int i = 0; i < EXPERT_PARTS; i++)
        parts[i] = mean[i];
    compare_experts(r, "dense_", parts, false);
}

static void replay_ewa(struct replay *r)
{
    void *owner;
    open_layer(r, (struct adapter_settings){.router = &router_random_uniform, .top_k = 1}, NULL);
    upload(r, "owner", SAFETENSOR_I32, 1, &r->n.tokens, &owner);
    r->given.owner = owner;
    run_layer(r);
    compare_rows(r, "y", &r->y);
    compare_rows(r, "gx", &r->dx);
    compare_gradients(r);
    compare_dense(r);
    compare_average(r);
}

/* kept [T, E]: 1 where a token reached an expert. */
static void compare_kept(struct replay *r)
{
    const struct dispatch *d = &r->adapters->towers[TOWER_IMAGE].passes[0].routed.dispatch;
    const size_t shape[] = {r->n.tokens, r->n.experts};
    int32_t *chosen = NULL, *slot = NULL;
    float *kept = xcalloc(r->n.tokens, r->n.experts * sizeof *kept);
    read_choices(r, d->chosen, &chosen);
    read_choices(r, d->slot, &slot);
    for (size_t i = 0; i < d->samples * d->top_k; i++)
        if (chosen[i] >= 0 && slot[i] >= 0)
            kept[i / d->top_k * r->n.experts + (size_t)chosen[i]] = 1;
    compare(r, "kept", kept, 2, shape);
    free(kept);
    free(slot);
    free(chosen);
}

static void replay_widenet(struct replay *r)
{
    struct adapter_settings settings = {
        .router = &router_softmax_topk, .router_noise = 1, .balance = BALANCE_LOSS_WIDENET};
    const size_t shape[] = {r->n.tokens, r->n.experts};
    size_t limit;
    double weight;
    void *noise;
    settings.top_k = config_size(r, "widenet", "topk");
    limit = config_size(r, "widenet", "limit");
    weight = config_number(r, "widenet", "balance_weight");
    settings.capacity = (double)(limit * r->n.experts) / (double)(settings.top_k * r->n.tokens);
    settings.balance_weight = (float)weight;
    open_layer(r, settings, "wf");
    upload(r, "noise", SAFETENSOR_F32, 2, shape, &noise);
    r->given.noise[TOWER_IMAGE] = noise;
    run_layer(r);
    compare_rows(r, "y", &r->y);
    compare_device(r, "prob", r->adapters->towers[TOWER_IMAGE].passes[0].kept[SOFTMAX_PROBABILITIES], 2, shape);
    compare_kept(r);
    compare_balance(r, weight);
    compare_rows(r, "gx", &r->dx);
    compare_router_gradient(r, "g_wf");
    compare_gradients(r);
}

static void compare_top(struct replay *r, size_t top_k)
{
    const void *expected;
    int32_t *chosen = NULL;
    const size_t shape[] = {r->n.tokens, top_k};
    find(r, "top", SAFETENSOR_I32, top_k == 1 ? 1 : 2, shape, &expected);
    read_choices(r, r->adapters->towers[TOWER_IMAGE].passes[0].routed.dispatch.chosen, &chosen);
    for (size_t i = 0; i < r->n.tokens * top_k; i++)
        report_exact(&r->report, "rmoe top", chosen[i] == ((const int32_t *)expected)[i],
                     "choice %zu is expert %d, expected %d", i, chosen[i], ((const int32_t *)expected)[i]);
    free(chosen);
}

static void replay_rmoe(struct replay *r)
{
    struct adapter_settings settings = {.router = &router_softmax_topk};
    double weight;
    settings.top_k = config_size(r, "rmoe", "topk");
    weight = config_number(r, "rmoe", "balance_weight");
    open_layer(r, settings, "wg");
    run_layer(r);
    compare_top(r, settings.top_k);
    compare_rows(r, "y_plain", &r->y);
    compare_rows(r, "gx_plain", &r->dx);
    compare_router_gradient(r, "g_wg_plain");
    settings.aligned_output = ALIGN_EACH; /* Equation 7 */
    settings.balance = BALANCE_LOSS_RMOE;
    settings.balance_weight = (float)weight;
    open_layer(r, settings, "wg");
    run_layer(r);
    compare_rows(r, "y_aligned", &r->y);
    compare_balance(r, weight);
    compare_rows(r, "gx_aligned", &r->dx);
    compare_router_gradient(r, "g_wg_aligned");
    compare_gradients(r);
}

/* ---- Folders ---- */

static const struct layer {
    const char *name;
    void (*replay)(struct replay *r);
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

static void check_names(const struct replay *r, const struct layer *layer)
{
    for (size_t i = 0; i < safetensors_count(r->file); i++) {
        char name[128];
        snprintf(name, sizeof name, " %s ", safetensors_at(r->file, i)->name);
        if (strstr(layer->tensors, name) == NULL)
            must(error_set(&error, ERROR_FORMAT, "%s: nobody compares tensor %s", safetensors_path(r->file),
                           safetensors_at(r->file, i)->name));
    }
}

static void replay_file(struct replay *r, const struct layer *layer, const char *file)
{
    r->name = layer->name;
    r->given.noise[TOWER_IMAGE] = NULL;
    r->given.owner = NULL;
    r->file = recorded_open(r->folder, "%s", file);
    check_names(r, layer);
    layer->replay(r);
    safetensors_close(r->file);
    r->file = NULL;
}

/* The layer of a file; NULL: it is none, and may be there all the same. */
static void layer_of(const struct replay *r, const char *file, const struct layer **layer)
{
    *layer = NULL;
    if (strcmp(file, "config.json") == 0 || strcmp(file, "README.md") == 0)
        return;
    for (size_t i = 0; i < LAYERS; i++) {
        size_t length = strlen(layers[i].name);
        if (strncmp(file, layers[i].name, length) == 0 && strcmp(file + length, ".safetensors") == 0)
            *layer = &layers[i];
    }
    must(*layer != NULL ? OK
                        : error_set(&error, ERROR_FORMAT,
                                    "%s/%s: expected ewa, widenet or rmoe.safetensors, config.json or README.md",
                                    r->folder, file));
}

static void replay_files(struct replay *r)
{
    struct directory directory;
    const struct layer *layer;
    read_config(r);
    must(directory_list(&directory, r->folder, &error));
    for (size_t i = 0; i < directory.count; i++) {
        layer_of(r, directory.names[i], &layer);
        if (layer != NULL)
            replay_file(r, layer, directory.names[i]);
    }
    directory_free(&directory);
}

static bool replay(const char *folder, const struct backend_settings *settings)
{
    struct replay r = {.folder = folder, .report.folder = folder};
    must(backend_open(&r.backend, settings, &error));
    must(r.backend->ops->arena_create(r.backend, &r.arena, 0, "replay", &error));
    given_begin(&r.given, r.backend);
    replay_files(&r);
    adapters_destroy(r.adapters);
    given_end(&r.given);
    r.backend->ops->arena_destroy(r.backend, &r.arena);
    json_decref(r.config);
    backend_close(r.backend);
    return report_finish(&r.report);
}

int main(int argc, char **argv)
{
    return replay_main("replay_mixtures", argc, argv, replay);
}
