/* fixtures/mixtures: mixture layers in a tower of one block, a file each. A tensor's tolerance is 2e-5 of its largest magnitude. A
 * file or tensor that is not known, or damaged, is an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/routers/router.h"
#include "adapters/statistics.h"
#include "core/file.h"
#include "tests/replay/replay.h"

#define RELATIVE 2e-5

static const char *const part_names[EXPERT_PARTS] = {"w1", "b1", "w2", "b2"};

/* Of the file at hand. */
struct mixture {
    struct replay *r;
    size_t tokens, width, hidden, experts;
    const char *name;
    struct safetensors *file;
    struct adapters *adapters;
    struct block_context context;
    struct tensor y, dx; /* [1, T, D] */
    float *loss;         /* device, one value */
};

/* ---- Comparing ---- */

static void compare(struct mixture *m, const float *device, const char *prefix, const char *name)
{
    const struct safetensor *expected = recorded(m->file, "%s%s", prefix, name);
    replay_compare(m->r, replay_text(m->r, "%s %s", m->name, expected->name), device, expected,
                   RELATIVE * recorded_largest(expected));
}

static const struct adapter_tower *tower_of(const struct mixture *m)
{
    return &m->adapters->towers[TOWER_IMAGE];
}

/* The parameters of the experts' four parts. */
static const struct parameter *part_of(const struct mixture *m, int part)
{
    return &tower_of(m)->parameters->list[tower_of(m)->banks[0].parts[part]];
}

/* values: those of the group, or its gradients */
static void compare_experts(struct mixture *m, const char *prefix, const float *values)
{
    for (int i = 0; i < EXPERT_PARTS; i++)
        compare(m, values + part_of(m, i)->offset, prefix, part_names[i]);
}

static void compare_router_gradient(struct mixture *m, const char *name)
{
    compare(m, parameters_weight(tower_of(m)->parameters, tower_of(m)->banks[0].routers).gradient, "g_", name);
}

static void compare_balance(struct mixture *m, double weight)
{
    const struct safetensor *expected = recorded(m->file, "balance");
    const float *loss = replay_download(m->r, m->loss, sizeof *loss);
    report_value(&m->r->report, replay_text(m->r, "%s balance", m->name), (double)(float)((double)*loss / weight),
                 recorded_value(expected, 0), RELATIVE * recorded_largest(expected));
}

/* ---- A layer, forward and back ---- */

/* A stack of experts, or a router's only matrix. */
static void upload_parameter(struct mixture *m, const char *name, const struct parameter *p)
{
    must(parameters_upload(tower_of(m)->parameters, p, recorded_floats(m->file, p->size, "%s", name), &error));
}

/* name: NULL: zeros */
static struct tensor take_rows(struct mixture *m, const char *name)
{
    struct tensor rows = {.type = TENSOR_F32, .rank = 3, .shape = {1, m->tokens, m->width}};
    rows.data = replay_upload(m->r, &m->r->arena,
                              name != NULL ? recorded_floats(m->file, m->tokens * m->width, "%s", name) : NULL,
                              tensor_bytes(&rows));
    return rows;
}

/* Adapters of the file's weights; router: the name of its matrix, NULL: it has none. */
static void open_layer(struct mixture *m, struct adapter_settings settings, const char *router)
{
    struct replay *r = m->r;
    const struct clip_dimensions dimensions = {.image_width = m->width,
                                               .image_hidden = m->hidden,
                                               .image_blocks = 1,
                                               .text_width = m->width,
                                               .text_hidden = m->hidden,
                                               .text_blocks = 1};
    settings.kind = &expert_ffn;
    settings.activation = ACTIVATION_GELU;
    settings.routing = ROUTING_PER_TOKEN;
    settings.experts = m->experts;
    settings.tasks = 1;
    settings.place.towers = ADAPT_IMAGE;
    expert_ffn.set_unread(&settings);
    adapters_destroy(m->adapters);
    must(adapters_create(&m->adapters, r->backend, &r->arena, &dimensions, &settings, PARAMETERS_TRAINED, &error));
    for (int i = 0; i < EXPERT_PARTS; i++)
        upload_parameter(m, part_names[i], part_of(m, i));
    if (router != NULL)
        upload_parameter(m, router, &tower_of(m)->parameters->list[tower_of(m)->banks[0].routers]);
    m->loss = replay_upload(r, &r->arena, NULL, sizeof *m->loss);
    m->context = (struct block_context){.backend = r->backend,
                                        .arena = &r->arena,
                                        .tower = TOWER_IMAGE,
                                        .training = true,
                                        .router = replay_upload(r, &r->arena, NULL, sizeof(int32_t)),
                                        .state = replay_upload(r, &r->arena, NULL, sizeof(struct step_state))};
    adapters_add_loss(m->adapters, m->loss, NULL, 1.0f);
    must(adapters_begin_task(m->adapters, 0, &error));
}

/* y [T, D], and the gradients: of x in dx. What decides and what experts read is the same. */
static void run_layer(struct mixture *m)
{
    const struct block_hook *hook = adapters_hooks(m->adapters, TOWER_IMAGE);
    struct backend *backend = m->r->backend;
    struct tensor x = take_rows(m, "x"), gy = take_rows(m, "gy"), dln2 = take_rows(m, NULL);
    m->y = take_rows(m, NULL);
    m->dx = take_rows(m, NULL);
    must(hook->forward(hook->state, &m->context, &x, &x, &m->y, &error));
    must(hook->backward(hook->state, &m->context, &x, &x, &gy, &m->dx, &dln2, &error));
    must(backend->ops->weighted_sum(backend,
                                    &(struct weighted_sum){.count = 2,
                                                           .n = tensor_elements(&m->dx),
                                                           .inputs = {m->dx.data, dln2.data},
                                                           .weights = {1, 1},
                                                           .out = m->dx.data},
                                    &error));
}

/* Numbers of the layer's choices, on the host. */
static const int32_t *read_choices(const struct mixture *m, const int32_t *device)
{
    const struct dispatch *d = &tower_of(m)->passes[0].routed.dispatch;
    return replay_download(m->r, device, d->samples * d->top_k * sizeof *device);
}

/* ---- The three files ---- */

static void compare_average(struct mixture *m)
{
    const struct merge_policy *policy;
    struct options *options = NULL;
    must(merge_policy_find(&policy, "ewa", &error));
    must(options_create(&options, policy->options, &error));
    recorded_option(options, policy->options, "rate", recorded_number(m->r->config, "ewa_beta"));
    must(options_set(options, "ramp", "constant", "replay", &error));
    must(policy->after_step(m->adapters, &(struct merge_call){.iteration = 1, .iterations = 1, .options = options},
                            &error));
    options_destroy(options);
    compare_experts(m, "avg_", tower_of(m)->parameters->values);
}

static void replay_ewa(struct mixture *m)
{
    float *mean[EXPERT_PARTS];
    open_layer(m, (struct adapter_settings){.router = &router_random_uniform, .top_k = 1}, NULL);
    m->r->given.owner =
        replay_upload(m->r, &m->r->arena, recorded_integers(m->file, "owner"), m->tokens * sizeof *m->r->given.owner);
    run_layer(m);
    compare(m, m->y.data, "", "y");
    compare(m, m->dx.data, "", "gx");
    compare_experts(m, "g_", tower_of(m)->parameters->gradients);
    must(adapters_mean(m->adapters, TOWER_IMAGE, 0, mean, &error)); /* answers after training */
    for (int i = 0; i < EXPERT_PARTS; i++)
        compare(m, mean[i], "dense_", part_names[i]);
    compare_average(m);
    m->r->given.owner = NULL;
}

/* kept [T, E]: 1 where a token reached an expert. */
static void compare_kept(struct mixture *m)
{
    const struct dispatch *d = &tower_of(m)->passes[0].routed.dispatch;
    const float *expected = recorded_floats(m->file, m->tokens * m->experts, "kept");
    const int32_t *chosen = read_choices(m, d->chosen), *slot = read_choices(m, d->slot);
    float *kept = replay_take(m->r, m->tokens * m->experts, sizeof *kept);
    for (size_t i = 0; i < d->samples * d->top_k; i++)
        if (chosen[i] >= 0 && slot[i] >= 0)
            kept[i / d->top_k * m->experts + (size_t)chosen[i]] = 1;
    report_values(&m->r->report, "widenet kept", kept, expected, m->tokens * m->experts, RELATIVE);
}

static void replay_widenet(struct mixture *m)
{
    const json_t *config = json_object_get(m->r->config, "widenet");
    double weight = recorded_number(config, "balance_weight");
    size_t top_k = recorded_size(config, "topk"), n = m->tokens * m->experts;
    struct adapter_settings settings = {.router = &router_softmax_topk,
                                        .router_noise = 1,
                                        .balance = BALANCE_LOSS_WIDENET,
                                        .balance_weight = (float)weight,
                                        .top_k = top_k,
                                        .capacity = (double)(recorded_size(config, "limit") * m->experts) /
                                                    (double)(top_k * m->tokens)};
    open_layer(m, settings, "wf");
    m->r->given.noise[TOWER_IMAGE] =
        replay_upload(m->r, &m->r->arena, recorded_floats(m->file, n, "noise"), n * sizeof(float));
    run_layer(m);
    compare(m, m->y.data, "", "y");
    compare(m, tower_of(m)->passes[0].kept[SOFTMAX_PROBABILITIES], "", "prob");
    compare_kept(m);
    compare_balance(m, weight);
    compare(m, m->dx.data, "", "gx");
    compare_router_gradient(m, "wf");
    compare_experts(m, "g_", tower_of(m)->parameters->gradients);
    m->r->given.noise[TOWER_IMAGE] = NULL;
}

static void replay_rmoe(struct mixture *m)
{
    const json_t *config = json_object_get(m->r->config, "rmoe");
    double weight = recorded_number(config, "balance_weight");
    struct adapter_settings settings = {.router = &router_softmax_topk, .top_k = recorded_size(config, "topk")};
    open_layer(m, settings, "wg");
    run_layer(m);
    const int32_t *expected = recorded_integers(m->file, "top");
    const int32_t *chosen = read_choices(m, tower_of(m)->passes[0].routed.dispatch.chosen);
    for (size_t i = 0; i < m->tokens * settings.top_k; i++)
        report_exact(&m->r->report, "rmoe top", chosen[i] == expected[i], "choice %zu is expert %d, expected %d", i,
                     chosen[i], expected[i]);
    compare(m, m->y.data, "", "y_plain");
    compare(m, m->dx.data, "", "gx_plain");
    compare_router_gradient(m, "wg_plain");
    settings.aligned_output = ALIGN_EACH; /* Equation 7 */
    settings.balance = BALANCE_LOSS_RMOE;
    settings.balance_weight = (float)weight;
    open_layer(m, settings, "wg");
    run_layer(m);
    compare(m, m->y.data, "", "y_aligned");
    compare_balance(m, weight);
    compare(m, m->dx.data, "", "gx_aligned");
    compare_router_gradient(m, "wg_aligned");
    compare_experts(m, "g_", tower_of(m)->parameters->gradients);
}

/* ---- Folders ---- */

static const struct layer {
    const char *name; /* of its file, before .safetensors */
    void (*replay)(struct mixture *m);
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

static void replay_layer(struct mixture *m, const struct layer *layer)
{
    m->name = layer->name;
    m->file = recorded_open(m->r, "%s.safetensors", layer->name);
    for (size_t i = 0; i < safetensors_count(m->file); i++) {
        const char *name = replay_text(m->r, " %s ", safetensors_at(m->file, i)->name);
        if (strstr(layer->tensors, name) == NULL)
            must(error_set(&error, ERROR_FORMAT, "%s: nobody compares tensor%s", safetensors_path(m->file), name));
    }
    layer->replay(m);
    safetensors_close(m->file);
}

static void replay_file(struct mixture *m, const char *file)
{
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(file, replay_text(m->r, "%s.safetensors", layers[i].name)) == 0)
            return replay_layer(m, &layers[i]);
    if (strcmp(file, "config.json") != 0 && strcmp(file, "README.md") != 0)
        must(error_set(&error, ERROR_FORMAT,
                       "%s/%s: expected ewa, widenet or rmoe.safetensors, config.json or README.md", m->r->folder,
                       file));
}

void replay_mixtures(struct replay *r)
{
    struct directory directory;
    struct mixture m = {.r = r,
                        .tokens = recorded_size(r->config, "tokens"),
                        .width = recorded_size(r->config, "width"),
                        .hidden = recorded_size(r->config, "hidden"),
                        .experts = recorded_size(r->config, "experts")};
    must(directory_list(&directory, r->folder, &error));
    for (size_t i = 0; i < directory.count; i++)
        replay_file(&m, directory.names[i]);
    directory_free(&directory);
    adapters_destroy(m.adapters);
}
