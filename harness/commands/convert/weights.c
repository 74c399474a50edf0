/* mtil convert weights: converts files of weights and adapters, also to and from the checkpoints of the public
 * MoE-Adapters code, which hold a whole CLIP with its adapters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/options.h"
#include "core/alloc.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/commands/command.h"
#include "harness/model/weights.h"
#include "models/files/torch/torch_file.h"
#include "models/files/weights_file.h"

enum { NAME_MOST = 160 };

static const struct option options[] = {
    OPTION_ONE_OF(
        "only", "all|adapters|weights", "all",
        "tensors to write: all, adapters (experts, routers and selector), or weights, which leaves the adapters out"),
    OPTION(TEXT, "base", NULL,
           "file of the CLIP that adapters belong to, to write its weights beside them; mini: the one that ships"),
    {0},
};

/* The tensors and metadata to write, and the files that hold them. */
struct content {
    struct safetensors *files[2]; /* IN, and --base or NULL */
    struct safetensor *tensors;
    char (*names)[NAME_MOST]; /* new names of renamed tensors */
    size_t count;
    struct safetensors_metadata *metadata;
    size_t metadata_count;
};

static void free_content(struct content *content)
{
    free(content->tensors);
    free(content->names);
    free(content->metadata);
    safetensors_close(content->files[0]);
    safetensors_close(content->files[1]);
}

/* ---- what belongs to whom ---- */

static bool has_part(const char *name, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(name, parts[i]) != NULL)
            return true;
    return false;
}

static bool is_of_adapters(const char *name)
{
    static const char *const parts[] = {".adaptmlp_list.", ".adaptmlp_shared.", ".router_list.", ".w_noise_list.",
                                        "selector."};
    return has_part(name, parts, sizeof parts / sizeof *parts);
}

/* Tensors that the public code saves and never reads: the last expert once more, a norm, and two buffers. */
static bool is_unused(const char *name)
{
    static const char *const parts[] = {".adaptmlp.", ".ln_3."};
    return strstr(name, "transformer.resblocks.") != NULL &&
           (has_part(name, parts, sizeof parts / sizeof *parts) || text_ends_with(name, ".mean") ||
            text_ends_with(name, ".std"));
}

/* With one router for all tasks the public code has no list of routers. */
static bool rename_single(const char *name, char renamed[NAME_MOST])
{
    static const char *const endings[][2] = {{".router1", ".router_list.0"}, {".w_noise", ".w_noise_list.0"}};
    for (size_t i = 0; i < 2; i++)
        if (text_ends_with(name, endings[i][0]) && strlen(name) + 8 < NAME_MOST) {
            snprintf(renamed, NAME_MOST, "%.*s%s", (int)(strlen(name) - strlen(endings[i][0])), name, endings[i][1]);
            return true;
        }
    return false;
}

/* ---- taking ---- */

enum part { PART_ALL, PART_ADAPTERS, PART_WEIGHTS }; /* in the order of --only */

static void take_tensors(struct content *content, const struct safetensors *file, enum part part)
{
    for (size_t i = 0; i < safetensors_count(file); i++) {
        struct safetensor *taken = &content->tensors[content->count];
        *taken = *safetensors_at(file, i);
        if (rename_single(taken->name, content->names[content->count]))
            taken->name = content->names[content->count];
        bool adapters = is_of_adapters(taken->name);
        if (!is_unused(taken->name) && (part == PART_ALL || adapters == (part == PART_ADAPTERS)))
            content->count++;
    }
}

/* Whether a key of metadata describes the weights. Without the adapters, their keys are left out: adapters do not state
 * defaults, so the keys would apply to other adapters in the file. */
static bool is_of_weights(const char *key)
{
    static const char *const keys[] = {"image_heads",  "text_heads",  "activation", "pool",
                                       "share_groups", "share_norms", "format"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* A key that IN and --base both have must have the same value. The digest is left out, because it is of the old
 * file. */
static status read_metadata(struct content *content, const struct safetensors *file, enum part part,
                            struct error *error)
{
    const char *key;
    for (size_t i = 0; (key = safetensors_metadata_key(file, i)) != NULL; i++) {
        const char *value = safetensors_metadata_value(file, key),
                   *stated = file != content->files[0] ? safetensors_metadata_value(content->files[0], key) : NULL;
        if (strcmp(key, SAFETENSORS_DIGEST) == 0 || (part == PART_WEIGHTS && !is_of_weights(key)))
            continue;
        if (stated != NULL && strcmp(stated, value) != 0)
            return error_set(error, ERROR_ARGUMENT,
                             "%s: metadata %s is \"%s\", but \"%s\" in %s: they belong to different models",
                             safetensors_path(content->files[0]), key, stated, value, safetensors_path(file));
        if (stated == NULL)
            content->metadata[content->metadata_count++] = (struct safetensors_metadata){key, value};
    }
    return OK;
}

static size_t count_metadata(const struct safetensors *file)
{
    size_t count = 0;
    while (safetensors_metadata_key(file, count) != NULL)
        count++;
    return count;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct safetensor *)a)->name, ((const struct safetensor *)b)->name);
}

static status check_content(struct content *content, const char *in, const char *only, struct error *error)
{
    qsort(content->tensors, content->count, sizeof *content->tensors, compare_names);
    for (size_t i = 1; i < content->count; i++)
        if (strcmp(content->tensors[i - 1].name, content->tensors[i].name) == 0)
            return error_set(error, ERROR_ARGUMENT,
                             "%s and %s both have tensor '%s': --base is for files that hold adapters alone", in,
                             content->files[1] != NULL ? safetensors_path(content->files[1]) : "itself",
                             content->tensors[i].name);
    return content->count > 0
               ? OK
               : error_set(error, ERROR_ARGUMENT, "%s: has no tensors to write with --only %s", in, only);
}

static status take_all(struct content *content, const struct command_call *call, enum part part, struct error *error)
{
    size_t most = 1, keys = 1;
    for (size_t f = 0; f < 2 && content->files[f] != NULL; f++) {
        most += safetensors_count(content->files[f]);
        keys += count_metadata(content->files[f]);
    }
    content->tensors = xcalloc(most, sizeof *content->tensors);
    content->names = xcalloc(most, sizeof *content->names);
    content->metadata = xcalloc(keys, sizeof *content->metadata);
    take_tensors(content, content->files[0], part);
    TRY(read_metadata(content, content->files[0], part, error));
    if (content->files[1] != NULL) {
        take_tensors(content, content->files[1], PART_WEIGHTS);
        TRY(read_metadata(content, content->files[1], PART_WEIGHTS, error));
    }
    return check_content(content, call->arguments[0], options_text(call->options, "only"), error);
}

/* ---- writing ---- */

static bool is_of_pytorch(const char *path)
{
    return text_ends_with(path, ".pth") || text_ends_with(path, ".pt") || text_ends_with(path, ".bin");
}

/* Whether the setting equals the public code's constant. */
static bool is_public(const struct safetensors_metadata *setting)
{
    double scale;
    if (strcmp(setting->key, "scale") == 0)
        return parse_real(setting->value, &scale) && (float)scale == 0.1F;
    if (strcmp(setting->key, "top_k") == 0)
        return strcmp(setting->value, "2") == 0;
    return strcmp(setting->key, "expert_input") == 0 && strcmp(setting->value, "residual") == 0;
}

/* Whether the public code has one value of it, whatever the file states. */
static bool is_setting(const char *key)
{
    const struct option *row = options_find(adapter_options, key);
    return (row != NULL && row->stated != STATED_NEVER && strcmp(key, "towers") != 0) ||
           strcmp(key, "expert_kind") == 0 || strcmp(key, "router") == 0;
}

/* Warns of settings that the public code does not know: it would load the adapters and compute something else. */
static void warn_of_settings(const struct content *content, const struct command_call *call)
{
    for (size_t i = 0; i < content->metadata_count; i++) {
        const struct safetensors_metadata *m = &content->metadata[i];
        if (is_setting(m->key) && !is_public(m))
            log_warn(call->log,
                     "%s: the public MoE-Adapters code ignores the adapters' setting %s=%s and computes something else",
                     call->arguments[1], m->key, m->value);
    }
}

static status write_content(const struct content *content, const struct command_call *call, struct error *error)
{
    const char *out = call->arguments[1];
    if (!is_of_pytorch(out))
        return safetensors_write(out, content->tensors, content->count, content->metadata, content->metadata_count,
                                 error);
    warn_of_settings(content, call);
    return torch_file_write(out, content->tensors, content->count, content->metadata, content->metadata_count, error);
}

static status check_target(const char *out, struct error *error)
{
    return is_of_pytorch(out) || text_ends_with(out, ".safetensors")
               ? OK
               : error_set(
                     error, ERROR_ARGUMENT,
                     "command line: convert weights: OUT: expected a name that ends with .safetensors, .pth, .pt or "
                     ".bin, found %s",
                     out);
}

/* Refuses to write over the file that is read: what --only leaves out would be lost. */
static status check_other(const char *in, const char *out, struct error *error)
{
    OWNED char *path = weights_path(in);
    bool other = weights_file_is_other(path, out);
    return other ? OK
                 : error_set(error, ERROR_ARGUMENT,
                             "command line: convert weights: OUT is %s, which is read; name another file", out);
}

static status open_file(struct safetensors **file, const char *name, struct error *error)
{
    OWNED char *path = weights_path(name);
    return weights_file_open(file, path, WEIGHTS_WHOLE, error);
}

static status run(const struct command_call *call, struct error *error)
{
    SCOPED(free_content) struct content content = {0};
    const char *base = options_text(call->options, "base");
    enum part part = (enum part)options_choice(call->options, "only");
    TRY(check_target(call->arguments[1], error));
    TRY(check_other(call->arguments[0], call->arguments[1], error));
    if (base != NULL)
        TRY(check_other(base, call->arguments[1], error));
    TRY(open_file(&content.files[0], call->arguments[0], error));
    if (base != NULL)
        TRY(open_file(&content.files[1], base, error));
    TRY(take_all(&content, call, part, error));
    TRY(write_content(&content, call, error));
    log_info(call->log, "%s: %zu tensors", call->arguments[1], content.count);
    return OK;
}

const struct command command_convert_weights = {
    .name = "convert weights",
    .arguments = "IN OUT",
    .summary = "write weights or adapters as a file of another form",
    .details =
        "IN is any file of weights: safetensors, PyTorch, or the index of shards. OUT ends with .safetensors, or\n"
        "with .pth, .pt or .bin for torch.load, with the tensors under \"state_dict\" as in the checkpoints of the\n"
        "public MoE-Adapters code. Such a checkpoint is a whole CLIP: --only adapters extracts the adapters, and\n"
        "--base FILE adds the CLIP again. Numbers, names and types stay as they are; metadata are kept for the\n"
        "tensors that are kept. Tensors that the public code saves and never reads (adaptmlp, ln_3, mean, std)\n"
        "are left out, so load_state_dict needs strict=False.\n",
    .example = "  mtil convert weights ViT-B-16.pt ViT-B-16.safetensors\n"
               "  mtil convert weights checkpoint.pth adapters.safetensors --only adapters\n"
               "  mtil convert weights adapters.safetensors checkpoint.pth --base ViT-B-16.pt\n",
    .options = options,
    .least = 2,
    .most = 2,
    .run = run,
};
