#include "adapters/files/adapter_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/experts/kind.h"
#include "adapters/routers/router.h"
#include "core/alloc.h"
#include "models/files/clip_config.h"

enum { OWN_KEYS = 14, NUMBERS_MOST = 1024 };

static const char *const alignments[] = {[ALIGN_SHARED] = "shared", [ALIGN_EACH] = "each"};
static const char *const share_keys[] = {"share_across_blocks", "share_routing"};

/* Tensors that a router has for each task. */
static size_t routing_tensors(const struct adapter_settings *s)
{
    return (size_t)router_kind_of(s)->weights + router_kind_of(s)->noise_weights;
}

static size_t tensors_per_block(const struct adapters *adapters)
{
    return EXPERT_PARTS * (adapters->settings.experts + adapters->settings.shared_expert) +
           routing_tensors(&adapters->settings) * adapters->settings.tasks;
}

size_t adapters_tensor_count(const struct adapters *adapters)
{
    return tensors_per_block(adapters) * (adapters->towers[TOWER_IMAGE].blocks + adapters->towers[TOWER_TEXT].blocks);
}

/* Slice number `slice` of the stacked parameter. */
static void describe(struct adapter_tensor *tensor, const struct parameter *p, size_t slice)
{
    tensor->rank = p->rank - 1;
    for (int r = 1; r < p->rank; r++)
        tensor->shape[r - 1] = p->shape[r];
    tensor->size = p->size / p->shape[0];
    tensor->offset = p->offset + slice * tensor->size;
}

void adapters_tensor_at(const struct adapters *adapters, size_t index, struct adapter_tensor *tensor)
{
    const char *const *expert_names = expert_kind_of(&adapters->settings)->parts;
    size_t per_block = tensors_per_block(adapters), block = index / per_block, k = index % per_block;
    *tensor = (struct adapter_tensor){.tower = block < adapters->towers[TOWER_IMAGE].blocks ? TOWER_IMAGE : TOWER_TEXT};
    block -= tensor->tower == TOWER_TEXT ? adapters->towers[TOWER_IMAGE].blocks : 0;
    const struct adapter_tower *tower = &adapters->towers[tensor->tower];
    const struct expert_bank *bank = &tower->banks[block];
    const char *visual = tensor->tower == TOWER_IMAGE ? "visual." : "";
    if (k < EXPERT_PARTS * adapters->settings.experts) {
        const size_t numbers[EXPERT_PARTS] = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias};
        size_t expert = k / EXPERT_PARTS, which = k % EXPERT_PARTS;
        snprintf(tensor->name, sizeof tensor->name, "%stransformer.resblocks.%zu.adaptmlp_list.%zu.%s", visual,
                 bank->block, expert, expert_names[which]);
        describe(tensor, &tower->parameters->list[numbers[which]], expert);
    } else if ((k -= EXPERT_PARTS * adapters->settings.experts) >=
               routing_tensors(&adapters->settings) * adapters->settings.tasks) {
        const struct expert_stack *shared = &bank->shared;
        const size_t numbers[] = {shared->down_weight, shared->down_bias, shared->up_weight, shared->up_bias};
        k -= routing_tensors(&adapters->settings) * adapters->settings.tasks;
        snprintf(tensor->name, sizeof tensor->name, "%stransformer.resblocks.%zu.adaptmlp_shared.%s", visual,
                 bank->block, expert_names[k]);
        describe(tensor, &tower->parameters->list[numbers[k]], 0);
    } else {
        size_t each = routing_tensors(&adapters->settings);
        bool noise = k % each == 1;
        snprintf(tensor->name, sizeof tensor->name, "%stransformer.resblocks.%zu.%s.%zu", visual, bank->block,
                 noise ? "w_noise_list" : "router_list", k / each);
        tensor->routing = true;
        describe(tensor, &tower->parameters->list[noise ? bank->noise : bank->routers], k / each);
    }
}

status adapters_tensor_download(const struct adapters *adapters, const struct adapter_tensor *t, float *values,
                                struct error *error)
{
    return adapters->backend->ops->download(adapters->backend, values,
                                            adapters->towers[t->tower].parameters->values + t->offset,
                                            t->size * sizeof *values, error);
}

status adapters_tensor_upload(struct adapters *adapters, const struct adapter_tensor *t, const float *values,
                              struct error *error)
{
    return adapters->backend->ops->upload(adapters->backend,
                                          parameters_write(adapters->towers[t->tower].parameters, t->offset, t->size),
                                          values, t->size * sizeof *values, error);
}

static status check_tensor(const struct safetensors *file, const char *name, int rank, const size_t *shape,
                           struct error *error)
{
    const struct safetensor *found = safetensors_find(file, name);
    if (found == NULL)
        return error_set(error, ERROR_FORMAT,
                         "%s: tensor %s is missing; the file does not fit the model or the number of experts and tasks",
                         safetensors_path(file), name);
    if (found->rank != rank || memcmp(found->shape, shape, (size_t)rank * sizeof *shape) != 0)
        return error_set(error, ERROR_FORMAT, "%s: tensor %s: expected shape %s, found %s", safetensors_path(file),
                         name, shape_text(rank, shape).text, shape_text(found->rank, found->shape).text);
    return OK;
}

static status load_tensor(struct adapters *adapters, const struct adapter_tensor *t, const struct safetensors *file,
                          const char *name, enum adapter_missing missing, float *values, struct error *error)
{
    const struct safetensor *found = safetensors_find(file, name);
    if (found == NULL && (missing == ADAPTER_ZERO_LEFT_OUT || (missing == ADAPTER_ROUTERS_OPTIONAL && t->routing))) {
        if (missing == ADAPTER_ROUTERS_OPTIONAL)
            return OK;
        memset(values, 0, t->size * sizeof *values);
        return adapters_tensor_upload(adapters, t, values, error);
    }
    TRY(check_tensor(file, name, t->rank, t->shape, error));
    TRY(safetensor_to_floats(found, values, error));
    TRY(safetensors_expect_finite(file, name, values, t->size, error));
    return adapters_tensor_upload(adapters, t, values, error);
}

static size_t largest_tensor(const struct adapters *adapters)
{
    size_t largest = 0;
    for (size_t i = 0; i < adapters_tensor_count(adapters); i++) {
        struct adapter_tensor t;
        adapters_tensor_at(adapters, i, &t);
        largest = t.size > largest ? t.size : largest;
    }
    return largest;
}

status adapters_load(struct adapters *adapters, const struct safetensors *file, const char *prefix,
                     enum adapter_missing missing, struct error *error)
{
    float *values = xmalloc(array_size(largest_tensor(adapters), sizeof *values));
    status result = OK;
    for (size_t i = 0; result == OK && i < adapters_tensor_count(adapters); i++) {
        struct adapter_tensor t;
        char name[192];
        adapters_tensor_at(adapters, i, &t);
        snprintf(name, sizeof name, "%s%s", prefix, t.name);
        result = load_tensor(adapters, &t, file, name, missing, values, error);
    }
    free(values);
    return result;
}

static bool has_key(const struct safetensors_metadata *metadata, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(metadata[i].key, key) == 0)
            return true;
    return false;
}

/* Default values are left out, except for the first three keys. */
static status write_with_metadata(const struct adapters *adapters, const struct adapter_extra *extra, const char *path,
                                  const struct safetensor *tensors, size_t tensor_count, const char *blocks,
                                  struct error *error)
{
    const struct adapter_settings *s = &adapters->settings;
    char top_k[24], scale[32], banks[24], decisions[24];
    snprintf(top_k, sizeof top_k, "%zu", s->top_k);
    snprintf(scale, sizeof scale, "%.9g", (double)s->scale);
    snprintf(banks, sizeof banks, "%zu", s->place.banks);
    snprintf(decisions, sizeof decisions, "%zu", s->place.decisions);
    struct safetensors_metadata metadata[OWN_KEYS + ADAPTER_EXTRA_KEYS] = {
        {"top_k", top_k},
        {"scale", scale},
        {"expert_input", s->input == EXPERT_INPUT_POST_LN ? "post_ln" : "residual"}};
    size_t count = 3;
    if (s->place.blocks.rule != BLOCKS_ALL)
        metadata[count++] = (struct safetensors_metadata){"blocks", blocks};
    if (s->place.towers != ADAPT_BOTH)
        metadata[count++] = (struct safetensors_metadata){"towers", adapted_towers_name(s->place.towers)};
    if (s->place.banks > 0)
        metadata[count++] = (struct safetensors_metadata){share_keys[0], banks};
    if (s->place.decisions > 0)
        metadata[count++] = (struct safetensors_metadata){share_keys[1], decisions};
    if (s->shared_expert)
        metadata[count++] = (struct safetensors_metadata){"shared_expert", "true"};
    if (s->gate_input == GATE_MEAN)
        metadata[count++] = (struct safetensors_metadata){"gate_input", "mean"};
    if (s->routing == ROUTING_PER_TOKEN)
        metadata[count++] = (struct safetensors_metadata){"routing", "per_token"};
    if (expert_kind_of(s) != &expert_lora)
        metadata[count++] = (struct safetensors_metadata){"expert_kind", expert_kind_of(s)->name};
    if (expert_kind_of(s)->models_activation)
        metadata[count++] = (struct safetensors_metadata){"activation", clip_activation_name(s->activation)};
    if (router_kind_of(s) != &router_noisy_topk)
        metadata[count++] = (struct safetensors_metadata){"router", router_kind_of(s)->name};
    if (s->aligned_output != ALIGN_NONE)
        metadata[count++] = (struct safetensors_metadata){"aligned_output", alignments[s->aligned_output]};
    size_t own = count;
    for (size_t i = 0; i < extra->metadata_count; i++)
        if (!has_key(metadata, own, extra->metadata[i].key))
            metadata[count++] = extra->metadata[i];
    return safetensors_write(path, tensors, tensor_count, metadata, count, error);
}

static status write_all(const struct adapters *adapters, const struct adapter_extra *extra, const char *path,
                        struct safetensor *tensors, struct adapter_tensor *described, float *values,
                        struct error *error)
{
    size_t count = adapters_tensor_count(adapters), at = 0;
    for (size_t i = 0; i < count; i++) {
        struct adapter_tensor *t = &described[i];
        adapters_tensor_at(adapters, i, t);
        TRY(adapters_tensor_download(adapters, t, values + at, error));
        if (not_finite_at(values + at, t->size) < t->size)
            return error_set(error, ERROR_FORMAT, "%s: tensor '%s' is not finite; nothing is written", path, t->name);
        tensors[i] = (struct safetensor){.name = t->name, .type = SAFETENSOR_F32, .rank = t->rank, .data = values + at};
        memcpy(tensors[i].shape, t->shape, sizeof t->shape);
        at += t->size;
    }
    for (size_t i = 0; i < extra->tensor_count; i++)
        tensors[count + i] = extra->tensors[i];
    struct text blocks = {0};
    block_choice_write(&adapters->settings.place.blocks, &blocks);
    status result =
        write_with_metadata(adapters, extra, path, tensors, count + extra->tensor_count, blocks.data, error);
    text_free(&blocks);
    return result;
}

status adapters_save(const struct adapters *adapters, const struct adapter_extra *extra, const char *path,
                     struct error *error)
{
    static const struct adapter_extra nothing;
    extra = extra != NULL ? extra : &nothing;
    assert(extra->metadata_count <= ADAPTER_EXTRA_KEYS);
    size_t count = adapters_tensor_count(adapters) + extra->tensor_count;
    struct safetensor *tensors = xcalloc(count, sizeof *tensors);
    struct adapter_tensor *described = xcalloc(count, sizeof *described);
    float *values = xmalloc(array_size(adapters_values(adapters), sizeof *values));
    status result = write_all(adapters, extra, path, tensors, described, values, error);
    free(values);
    free(described);
    free(tensors);
    return result;
}

/* "…resblocks.3.adaptmlp_list.17.down_proj.weight" → 17 for part "adaptmlp_list."; −1: another tensor */
static long number_after(const char *name, const char *part)
{
    const char *at = strstr(name, part);
    if (at == NULL)
        return -1;
    char *end;
    long number = strtol(at + strlen(part), &end, 10);
    return end == at + strlen(part) || number < 0 || number > 1 << 20 ? -1 : number;
}

static status runs_from_metadata(const struct safetensors *file, const char *key, size_t *runs, struct error *error)
{
    const char *value = safetensors_metadata_value(file, key);
    int64_t number;
    if (value == NULL)
        return OK;
    if (!parse_integer(value, &number) || number < 1)
        return error_set(error, ERROR_FORMAT, "%s: metadata %s: expected a whole number from 1, found \"%s\"",
                         safetensors_path(file), key, value);
    *runs = (size_t)number;
    return OK;
}

static status place_from_metadata(const struct safetensors *file, struct adapter_place *place, struct error *error)
{
    const char *blocks = safetensors_metadata_value(file, "blocks"),
               *towers = safetensors_metadata_value(file, "towers");
    if (blocks != NULL && block_choice_parse(&place->blocks, blocks, error) != OK)
        return error_context(error, "%s: metadata blocks", safetensors_path(file));
    if (blocks != NULL && place->blocks.rule == BLOCKS_BY_SCORE)
        return error_set(error, ERROR_FORMAT,
                         "%s: metadata blocks: expected the blocks themselves, found the rule \"%s\"",
                         safetensors_path(file), blocks);
    if (towers != NULL && !adapted_towers_find(&place->towers, towers))
        return error_set(error, ERROR_FORMAT, "%s: metadata towers: expected both, image or text, found \"%s\"",
                         safetensors_path(file), towers);
    TRY(runs_from_metadata(file, share_keys[0], &place->banks, error));
    return runs_from_metadata(file, share_keys[1], &place->decisions, error);
}

static status gate_from_metadata(const struct safetensors *file, struct adapter_settings *settings, struct error *error)
{
    const char *input = safetensors_metadata_value(file, "gate_input"),
               *routing = safetensors_metadata_value(file, "routing");
    settings->routing = routing != NULL && strcmp(routing, "per_token") == 0 ? ROUTING_PER_TOKEN : ROUTING_PER_SAMPLE;
    settings->gate_input = input != NULL && strcmp(input, "mean") == 0 ? GATE_MEAN : GATE_CLASS_TOKEN;
    if (input != NULL && settings->gate_input != GATE_MEAN && strcmp(input, "class_token") != 0)
        return error_set(error, ERROR_FORMAT, "%s: metadata gate_input: expected class_token or mean, found \"%s\"",
                         safetensors_path(file), input);
    if (routing != NULL && settings->routing != ROUTING_PER_TOKEN && strcmp(routing, "per_sample") != 0)
        return error_set(error, ERROR_FORMAT, "%s: metadata routing: expected per_sample or per_token, found \"%s\"",
                         safetensors_path(file), routing);
    return OK;
}

static status kinds_from_metadata(const struct safetensors *file, struct adapter_settings *settings,
                                  struct error *error)
{
    const char *kind = safetensors_metadata_value(file, "expert_kind"),
               *activation = safetensors_metadata_value(file, "activation"),
               *router = safetensors_metadata_value(file, "router"),
               *aligned = safetensors_metadata_value(file, "aligned_output");
    settings->router = &router_noisy_topk;
    if (router != NULL && router_kind_find(&settings->router, router, error) != OK)
        return error_context(error, "%s: metadata router", safetensors_path(file));
    for (int i = ALIGN_SHARED; aligned != NULL && i <= ALIGN_EACH; i++)
        settings->aligned_output = strcmp(aligned, alignments[i]) == 0 ? (enum alignment)i : settings->aligned_output;
    if (aligned != NULL && settings->aligned_output == ALIGN_NONE)
        return error_set(error, ERROR_FORMAT,
                         "%s: metadata aligned_output: expected shared, each or nothing, found \"%s\"",
                         safetensors_path(file), aligned);
    settings->kind = &expert_lora;
    if (kind != NULL && expert_kind_find(&settings->kind, kind, error) != OK)
        return error_context(error, "%s: metadata expert_kind", safetensors_path(file));
    if (!settings->kind->models_activation)
        return OK;
    settings->activation = activation != NULL ? clip_activation_parse(activation) : ACTIVATION_NONE;
    if (settings->activation == ACTIVATION_NONE)
        return error_set(error, ERROR_FORMAT,
                         "%s: metadata activation: expected quick_gelu or gelu, of experts of kind %s, found \"%s\"",
                         safetensors_path(file), settings->kind->name, activation != NULL ? activation : "");
    return OK;
}

static status settings_from_metadata(const struct safetensors *file, struct adapter_settings *settings,
                                     struct error *error)
{
    const char *top_k = safetensors_metadata_value(file, "top_k"), *scale = safetensors_metadata_value(file, "scale");
    const char *input = safetensors_metadata_value(file, "expert_input"),
               *shared = safetensors_metadata_value(file, "shared_expert");
    int64_t k;
    double s;
    if (top_k != NULL) {
        if (!parse_integer(top_k, &k) || k < 1)
            return error_set(error, ERROR_FORMAT, "%s: metadata top_k: expected a whole number from 1, found \"%s\"",
                             safetensors_path(file), top_k);
        settings->top_k = (size_t)k;
    }
    if (scale != NULL) {
        if (!parse_real(scale, &s))
            return error_set(error, ERROR_FORMAT, "%s: metadata scale: expected a number, found \"%s\"",
                             safetensors_path(file), scale);
        settings->scale = (float)s;
    }
    if (input != NULL) {
        if (strcmp(input, "post_ln") != 0 && strcmp(input, "residual") != 0)
            return error_set(error, ERROR_FORMAT,
                             "%s: metadata expert_input: expected residual or post_ln, found \"%s\"",
                             safetensors_path(file), input);
        settings->input = strcmp(input, "post_ln") == 0 ? EXPERT_INPUT_POST_LN : EXPERT_INPUT_RESIDUAL;
    }
    if (shared != NULL && strcmp(shared, settings->shared_expert ? "true" : "false") != 0)
        return error_set(error, ERROR_FORMAT, "%s: metadata shared_expert is \"%s\", but the file has %s such expert",
                         safetensors_path(file), shared, settings->shared_expert ? "a" : "no");
    TRY(gate_from_metadata(file, settings, error));
    return place_from_metadata(file, &settings->place, error);
}

status adapter_file_settings(const struct safetensors *file, const char *prefix, struct adapter_settings *settings,
                             struct error *error)
{
    char first[64];
    bool found = false;
    settings->experts = settings->tasks = settings->bottleneck = 0;
    settings->shared_expert = false;
    TRY(kinds_from_metadata(file, settings, error));
    snprintf(first, sizeof first, ".%s", settings->kind->parts[0]);
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensor *t = safetensors_at(file, i);
        if (strncmp(t->name, prefix, strlen(prefix)) != 0)
            continue;
        long expert = number_after(t->name, ".adaptmlp_list."), router = number_after(t->name, ".router_list.");
        settings->shared_expert = settings->shared_expert || strstr(t->name, ".adaptmlp_shared.") != NULL;
        if (expert >= 0 && (size_t)expert + 1 > settings->experts)
            settings->experts = (size_t)expert + 1;
        if (router >= 0 && (size_t)router + 1 > settings->tasks)
            settings->tasks = (size_t)router + 1;
        if (expert >= 0 && strstr(t->name, first) != NULL && t->rank == 2 && t->shape[0] > 0) {
            settings->bottleneck = t->shape[0];
            found = true;
        }
    }
    if (settings->experts == 0 || !found)
        return error_set(
            error, ERROR_FORMAT,
            "%s: holds no experts; expected tensors such as %svisual.transformer.resblocks.0.adaptmlp_list.0%s",
            safetensors_path(file), prefix, first);
    if (settings->kind->settle != NULL)
        settings->kind->settle(settings);
    if (!settings->router->weights)
        settings->tasks = 1;
    if (settings->tasks == 0)
        return error_set(
            error, ERROR_FORMAT,
            "%s: holds no routers; expected tensors such as %svisual.transformer.resblocks.0.router_list.0",
            safetensors_path(file), prefix);
    return settings_from_metadata(file, settings, error);
}

/* Lists the routers below `tasks` of the first block that has a router in the file. */
static void list_routers(const struct safetensors *file, size_t tasks, struct text *list)
{
    const char *block = "";
    int size = 0;
    for (size_t i = 0; size == 0 && i < safetensors_count(file); i++) {
        block = safetensors_at(file, i)->name;
        const char *at = strstr(block, ".router_list.");
        size = at != NULL ? (int)(at - block) : 0;
    }
    for (size_t r = 0; r < tasks; r++) {
        char name[160];
        snprintf(name, sizeof name, "%.*s.router_list.%zu", size, block, r);
        if (safetensors_find(file, name) != NULL)
            text_add(list, "%s%zu", list->size > 0 ? ", " : "", r);
    }
}

status adapter_file_routers(const struct safetensors *file, struct text *list, struct error *error)
{
    struct adapter_settings settings = {0};
    TRY(adapter_file_settings(file, "", &settings, error));
    list_routers(file, settings.tasks, list);
    return OK;
}

static status missing_router(const struct adapters *adapters, const struct safetensors *file, size_t router,
                             const char *tensor, struct error *error)
{
    struct text list = {0};
    list_routers(file, adapters->settings.tasks, &list);
    error_set(error, ERROR_ARGUMENT, "%s: has no router %zu (tensor %s is missing); its routers are: %s",
              safetensors_path(file), router, tensor, list.data != NULL ? list.data : "none that is complete");
    text_free(&list);
    return ERROR_ARGUMENT;
}

static status expect_router(const struct adapters *adapters, const struct safetensors *file, size_t router,
                            struct error *error)
{
    for (int t = 0; router_kind_of(&adapters->settings)->weights && t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++) {
            char name[96];
            snprintf(name, sizeof name, "%stransformer.resblocks.%zu.router_list.%zu",
                     t == TOWER_IMAGE ? "visual." : "", adapters->towers[t].banks[b].block, router);
            if (safetensors_find(file, name) == NULL)
                return missing_router(adapters, file, router, name, error);
        }
    return OK;
}

/* Numbers come from tensor names, so a hostile file could ask for any amount of memory. */
static status check_settings(const struct safetensors *file, const struct adapter_settings *s, struct error *error)
{
    if (s->experts > NUMBERS_MOST || s->tasks > NUMBERS_MOST)
        return error_set(error, ERROR_FORMAT, "%s: expected at most %d experts and routers, found %zu and %zu",
                         safetensors_path(file), NUMBERS_MOST, s->experts, s->tasks);
    if (s->top_k > s->experts)
        return error_set(error, ERROR_FORMAT, "%s: its metadata says top_k %zu, but it has only %zu experts",
                         safetensors_path(file), s->top_k, s->experts);
    return OK;
}

/* A file may also state sizes without having the tensors, so the largest tensors are looked for first. */
static status expect_experts(const struct safetensors *file, const struct clip_dimensions *dimensions,
                             const struct adapter_settings *s, struct error *error)
{
    for (size_t n = 0; n < dimensions->image_blocks + dimensions->text_blocks; n++) {
        enum tower tower = n < dimensions->image_blocks ? TOWER_IMAGE : TOWER_TEXT;
        size_t block = tower == TOWER_IMAGE ? n : n - dimensions->image_blocks;
        const size_t shape[] = {adapters_hidden(dimensions, s, tower),
                                tower == TOWER_IMAGE ? dimensions->image_width : dimensions->text_width};
        bool has = adapter_place_has_bank(&s->place, dimensions, tower, block);
        for (size_t e = 0; has && e < s->experts; e++) {
            char name[128];
            snprintf(name, sizeof name, "%stransformer.resblocks.%zu.adaptmlp_list.%zu.%s",
                     tower == TOWER_IMAGE ? "visual." : "", block, e, expert_kind_of(s)->parts[0]);
            TRY(check_tensor(file, name, 2, shape, error));
        }
    }
    return OK;
}

static status open_from(struct adapters **result, struct backend *backend, struct arena *arena,
                        const struct clip_dimensions *dimensions, const struct safetensors *file, struct error *error)
{
    struct adapter_settings settings = {.top_k = 2, .scale = 0.1f};
    TRY(adapter_file_settings(file, "", &settings, error));
    if (safetensors_metadata_value(file, "top_k") == NULL && settings.experts < settings.top_k)
        settings.top_k = settings.experts;
    TRY(check_settings(file, &settings, error));
    if (adapter_place_check(&settings.place, dimensions, error) != OK)
        return error_context(error, "%s: does not fit the model", safetensors_path(file));
    TRY(expect_experts(file, dimensions, &settings, error));
    return adapters_create(result, backend, arena, dimensions, &settings, PARAMETERS_FROZEN, error);
}

status adapters_open(struct adapters **result, struct backend *backend, struct arena *arena,
                     const struct clip_dimensions *dimensions, const struct safetensors *file, const int *routers,
                     size_t count, struct error *error)
{
    struct adapters *adapters = NULL;
    status opened = open_from(&adapters, backend, arena, dimensions, file, error);
    NEXT(opened, adapters_load(adapters, file, "", ADAPTER_ROUTERS_OPTIONAL, error));
    for (size_t i = 0; opened == OK && i < count; i++)
        opened = routers[i] < 0 ? OK : expect_router(adapters, file, (size_t)routers[i], error);
    if (opened != OK) {
        adapters_destroy(adapters);
        return opened;
    }
    *result = adapters;
    return OK;
}
