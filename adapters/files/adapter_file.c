#include "adapters/files/adapter_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/options.h"
#include "adapters/routers/router.h"
#include "core/alloc.h"
#include "core/scope.h"
#include "models/files/clip_config.h"

enum { NUMBERS_MOST = 1024, ADAPTER_STATED = 16 };

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

void adapters_tensor_at(const struct adapters *adapters, size_t index, struct group_tensor *tensor)
{
    const struct adapter_settings *s = &adapters->settings;
    const char *const *parts = expert_kind_of(s)->parts;
    size_t per_block = tensors_per_block(adapters), block = index / per_block, k = index % per_block,
           images = adapters->towers[TOWER_IMAGE].blocks, each = routing_tensors(s),
           experts = EXPERT_PARTS * s->experts;
    const struct adapter_tower *tower = &adapters->towers[block < images ? TOWER_IMAGE : TOWER_TEXT];
    const struct expert_bank *bank = &tower->banks[block < images ? block : block - images];
    *tensor = (struct group_tensor){.routing = k >= experts && k < experts + each * s->tasks};
    int used = snprintf(tensor->name, sizeof tensor->name, "%stransformer.resblocks.%zu.",
                        block < images ? "visual." : "", bank->block);
    char *rest = tensor->name + used;
    size_t left = sizeof tensor->name - (size_t)used;
    if (k < experts) {
        snprintf(rest, left, "adaptmlp_list.%zu.%s", k / EXPERT_PARTS, parts[k % EXPERT_PARTS]);
        group_tensor_slice(tensor, tower->parameters, bank->parts[k % EXPERT_PARTS], k / EXPERT_PARTS);
    } else if (!tensor->routing) {
        k -= experts + each * s->tasks;
        snprintf(rest, left, "adaptmlp_shared.%s", parts[k]);
        group_tensor_slice(tensor, tower->parameters, bank->shared[k], 0);
    } else {
        k -= experts;
        bool noise = k % each == 1;
        snprintf(rest, left, "%s.%zu", noise ? "w_noise_list" : "router_list", k / each);
        group_tensor_slice(tensor, tower->parameters, noise ? bank->noise : bank->routers, k / each);
    }
}

static struct group_tensor *list_tensors(const struct adapters *adapters)
{
    struct group_tensor *list = xcalloc(adapters_tensor_count(adapters), sizeof *list);
    for (size_t i = 0; i < adapters_tensor_count(adapters); i++)
        adapters_tensor_at(adapters, i, &list[i]);
    return list;
}

status adapters_load(struct adapters *adapters, const struct safetensors *file, const char *prefix,
                     enum group_missing missing, struct error *error)
{
    OWNED struct group_tensor *list = list_tensors(adapters);
    return group_tensors_load(list, adapters_tensor_count(adapters), file, prefix, missing, error);
}

/* --- Writing --- */

static status save(const struct adapters *adapters, const char *blocks, const struct group_tensor *list,
                   const struct group_extra *extra, const char *path, struct error *error)
{
    const struct adapter_settings *s = &adapters->settings;
    const struct expert_kind *kind = expert_kind_of(s);
    char values[ADAPTER_STATED][32];
    struct safetensors_metadata own[ADAPTER_STATED + 4];
    size_t count = 0;
    for (const struct option *row = adapter_options; row->name != NULL; row++) {
        if (row->stated == STATED_NEVER)
            continue;
        assert(count < ADAPTER_STATED);
        option_print(row, s, values[count], sizeof values[count]);
        if (row->stated == STATED_ALWAYS || strcmp(values[count], row->fallback) != 0) {
            own[count] = (struct safetensors_metadata){row->name, values[count]};
            count++;
        }
    }
    if (strcmp(blocks, "all") != 0)
        own[count++] = (struct safetensors_metadata){"blocks", blocks};
    if (kind != &expert_lora)
        own[count++] = (struct safetensors_metadata){"expert_kind", kind->name};
    if (kind->models_activation)
        own[count++] = (struct safetensors_metadata){"activation", clip_activation_name(s->activation)};
    if (router_kind_of(s) != &router_noisy_topk)
        own[count++] = (struct safetensors_metadata){"router", router_kind_of(s)->name};
    return group_tensors_save(list, adapters_tensor_count(adapters), own, count, extra, path, error);
}

status adapters_save(const struct adapters *adapters, const struct group_extra *extra, const char *path,
                     struct error *error)
{
    OWNED struct group_tensor *list = list_tensors(adapters);
    SCOPED(text_free) struct text blocks = {0};
    block_choice_write(&adapters->settings.place.blocks, &blocks);
    return save(adapters, blocks.data, list, extra, path, error);
}

/* --- Reading --- */

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

/* Of a kind that is not in the options of a suite under this name. */
static status kind_from_metadata(const struct safetensors *file, struct adapter_settings *settings, struct error *error)
{
    const char *kind = safetensors_metadata_value(file, "expert_kind"),
               *activation = safetensors_metadata_value(file, "activation");
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

/* Of the rows that a file states. */
static status read_metadata(struct options *options, const struct safetensors *file, struct error *error)
{
    char where[512];
    snprintf(where, sizeof where, "%s: metadata", safetensors_path(file));
    for (const struct option *row = adapter_options; row->name != NULL; row++) {
        struct error reason;
        const char *value = row->stated != STATED_NEVER ? safetensors_metadata_value(file, row->name) : NULL;
        if (value != NULL && options_set(options, row->name, value, where, &reason) != OK)
            return error_set(error, ERROR_FORMAT, "%s", reason.message);
    }
    return OK;
}

static status read_stated(const struct options *options, const struct safetensors *file, struct adapter_settings *s,
                          struct error *error)
{
    const char *blocks = safetensors_metadata_value(file, "blocks");
    bool shared = s->shared_expert;
    for (const struct option *row = adapter_options; row->name != NULL; row++)
        if (row->stated != STATED_NEVER)
            options_fill(options, (const struct option[]){*row, {0}}, s);
    if (!options_given(options, "top_k") && s->experts < s->top_k)
        s->top_k = s->experts;
    if (options_given(options, "shared_expert") && s->shared_expert != shared)
        return error_set(error, ERROR_FORMAT, "%s: metadata shared_expert is \"%s\", but the file has %s such expert",
                         safetensors_path(file), options_as_text(options, "shared_expert"), shared ? "a" : "no");
    s->shared_expert = shared;
    if (blocks != NULL && block_choice_parse(&s->place.blocks, blocks, error) != OK)
        return error_context(error, "%s: metadata blocks", safetensors_path(file));
    if (s->place.blocks.rule == BLOCKS_BY_SCORE)
        return error_set(error, ERROR_FORMAT,
                         "%s: metadata blocks: expected the blocks themselves, found the rule \"%s\"",
                         safetensors_path(file), blocks);
    return OK;
}

static status settings_from_metadata(const struct safetensors *file, struct adapter_settings *settings,
                                     struct error *error)
{
    SCOPED(options_destroy_at) struct options *options = NULL;
    TRY(options_create(&options, adapter_options, error));
    TRY(read_metadata(options, file, error));
    return read_stated(options, file, settings, error);
}

static status router_from_metadata(const struct safetensors *file, struct adapter_settings *settings,
                                   struct error *error)
{
    const char *router = safetensors_metadata_value(file, "router");
    settings->router = &router_noisy_topk;
    if (router != NULL && router_kind_find(&settings->router, router, error) != OK)
        return error_context(error, "%s: metadata router", safetensors_path(file));
    return OK;
}

status adapter_file_settings(const struct safetensors *file, const char *prefix, struct adapter_settings *settings,
                             struct error *error)
{
    char first[64];
    bool found = false;
    settings->experts = settings->tasks = settings->bottleneck = 0;
    settings->shared_expert = false;
    TRY(router_from_metadata(file, settings, error));
    TRY(kind_from_metadata(file, settings, error));
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
    if (settings->kind->set_unread != NULL)
        settings->kind->set_unread(settings);
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
    SCOPED(text_free) struct text list = {0};
    list_routers(file, adapters->settings.tasks, &list);
    error_set(error, ERROR_ARGUMENT, "%s: has no router %zu (tensor %s is missing); its routers are: %s",
              safetensors_path(file), router, tensor, list.data != NULL ? list.data : "none that is complete");
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
            TRY(group_tensor_check(file, name, 2, shape, error));
        }
    }
    return OK;
}

static status open_from(struct adapters **result, struct backend *backend, struct arena *arena,
                        const struct clip_dimensions *dimensions, const struct safetensors *file, struct error *error)
{
    struct adapter_settings settings = {0};
    TRY(adapter_file_settings(file, "", &settings, error));
    TRY(check_settings(file, &settings, error));
    if (adapter_place_check("adapter", &settings.place, dimensions, error) != OK)
        return error_context(error, "%s: does not fit the model", safetensors_path(file));
    TRY(expect_experts(file, dimensions, &settings, error));
    return adapters_create(result, backend, arena, dimensions, &settings, PARAMETERS_FROZEN, error);
}

status adapters_open(struct adapters **result, struct backend *backend, struct arena *arena,
                     const struct clip_dimensions *dimensions, const struct safetensors *file, const int *routers,
                     size_t count, struct error *error)
{
    SCOPED(adapters_destroy_at) struct adapters *adapters = NULL;
    TRY(open_from(&adapters, backend, arena, dimensions, file, error));
    TRY(adapters_load(adapters, file, "", GROUP_ROUTERS_OPTIONAL, error));
    for (size_t i = 0; i < count; i++)
        TRY(routers[i] < 0 ? OK : expect_router(adapters, file, (size_t)routers[i], error));
    *result = TAKE(adapters);
    return OK;
}

/* --- Classifiers --- */

static status write_file(const struct vit_content *content, const struct adapters *adapters,
                         const struct adapter_metadata_entries *metadata, const char *path, struct error *error)
{
    struct safetensors_metadata entries[VIT_METADATA + ADAPTER_METADATA_KEYS];
    struct group_extra extra = {.tensors = content->tensors,
                                .tensor_count = content->tensor_count,
                                .metadata = entries,
                                .metadata_count = VIT_METADATA + metadata->count};
    memcpy(entries, content->metadata, sizeof content->metadata);
    memcpy(entries + VIT_METADATA, metadata->list, metadata->count * sizeof *metadata->list);
    if (adapters != NULL)
        return adapters_save(adapters, &extra, path, error);
    return safetensors_write(path, extra.tensors, extra.tensor_count, entries, extra.metadata_count, error);
}

static const struct clip_tensor *find_name(const struct vit_content *content, const char *own)
{
    const struct clip_tensor *name = content->names;
    while (strcmp(name->openai, own) != 0)
        name++;
    return name;
}

/* Adds one tensor of a block's mean in place of the MLP's. */
static status add_mean(struct vit_content *content, const struct clip *vit, const char *own, const float *mean,
                       const char *path, struct error *error)
{
    const struct parameter *p = parameters_find(vit->parameters, own);
    const struct clip_tensor *name = find_name(content, own);
    struct safetensor *out = &content->tensors[content->tensor_count++];
    float *values = content->values[0] + p->offset;
    *out = (struct safetensor){.name = name->names[0], .type = SAFETENSOR_F32, .rank = p->rank, .data = values};
    memcpy(out->shape, p->shape, (size_t)p->rank * sizeof *p->shape);
    TRY(vit->backend->ops->download(vit->backend, values, mean, p->size * sizeof *values, error));
    if (not_finite_at(values, p->size) < p->size)
        return error_set(error, ERROR_FORMAT,
                         "%s: the mean of the experts for tensor '%s' is not finite; nothing is "
                         "written",
                         path, p->name);
    return OK;
}

static status add_means(struct vit_content *content, const struct clip *vit, const struct adapters *adapters,
                        const char *path, struct error *error)
{
    static const char *const parts[EXPERT_PARTS] = {"c_fc.weight", "c_fc.bias", "c_proj.weight", "c_proj.bias"};
    const struct adapter_tower *tower = &adapters->towers[TOWER_IMAGE];
    for (size_t i = 0; i < tower->adapted; i++) {
        float *mean[EXPERT_PARTS];
        TRY(adapters_mean(adapters, TOWER_IMAGE, tower->passes[i].bank, mean, error));
        for (int k = 0; k < EXPERT_PARTS; k++) {
            char own[CLIP_NAME];
            snprintf(own, sizeof own, "visual.transformer.resblocks.%zu.mlp.%s", tower->passes[i].block, parts[k]);
            TRY(add_mean(content, vit, own, mean[k], path, error));
        }
    }
    return OK;
}

status classifier_save(const struct clip *vit, const struct linear_head *head, const struct adapters *adapters,
                       const struct adapter_metadata *metadata, const char *path, struct error *error)
{
    SCOPED(vit_content_free) struct vit_content content = {0};
    SCOPED(adapter_metadata_entries_free) struct adapter_metadata_entries said = {0};
    /* the mean of the experts is used in evaluation, and no block shares its MLP */
    bool dense = adapters != NULL && router_kind_of(&adapters->settings)->averages && vit->run == 1;
    TRY(metadata != NULL ? adapter_metadata_entries(&said, metadata, error) : OK);
    TRY(vit_content_take(&content, vit, head, VIT_TIMM, path, error));
    if (dense)
        TRY(add_means(&content, vit, adapters, path, error));
    return write_file(&content, dense ? NULL : adapters, &said, path, error);
}
