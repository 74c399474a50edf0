/* mtil convert peft: low-rank deltas as an adapter of Hugging Face's PEFT for CLIPModel, and back. PEFT's W + lora_alpha / r · B A
 * (Hu et al. 2022, "LoRA") has B [out, r], which is [r, out] here. The deltas of several tasks add up: they are rows of one A and
 * columns of one B. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/deltas.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/json.h"
#include "core/text.h"
#include "harness/commands/command.h"
#include "models/files/safetensors.h"

enum {
    NAME_MOST = 160,
    BLOCKS_MOST = 64,
    PLACES = TOWERS * BLOCKS_MOST * DELTA_MATRICES,
    RANK_UNIT = 4,
    METADATA_MOST = 32
};

static const char *const modules[DELTA_MATRICES] = {"self_attn.q_proj",   "self_attn.k_proj", "self_attn.v_proj",
                                                    "self_attn.out_proj", "mlp.fc1",          "mlp.fc2"};

/* A matrix that may have a delta. */
struct place {
    char own[NAME_MOST], module[NAME_MOST]; /* "visual.transformer.resblocks.3.query", "vision_model.encoder.…" */
};

static struct place place_at(size_t number)
{
    size_t matrix = number % DELTA_MATRICES, block = number / DELTA_MATRICES % BLOCKS_MOST;
    bool image = number / DELTA_MATRICES / BLOCKS_MOST == TOWER_IMAGE;
    struct place place;
    snprintf(place.own, sizeof place.own, "%stransformer.resblocks.%zu.%s", image ? "visual." : "", block,
             delta_matrix_names[matrix]);
    snprintf(place.module, sizeof place.module, "%s_model.encoder.layers.%zu.%s", image ? "vision" : "text", block,
             modules[matrix]);
    return place;
}

struct conversion {
    const struct safetensors *from;
    size_t used, count;         /* tensors of it; tensors to write */
    struct safetensor *tensors; /* with their names and values */
    struct safetensors_metadata metadata[METADATA_MOST];
    size_t metadata_count;
    size_t rank, tasks; /* of all matrices, 0: none was seen; deltas that each has */
    double scale;       /* of B A */
    json_t *modules;    /* names of those with a delta */
};

static void free_conversion(struct conversion *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free((char *)c->tensors[i].name);
        free((float *)c->tensors[i].data);
    }
    free(c->tensors);
    json_decref(c->modules);
}

/* The halves of a delta: a [rank, in], b [rank, out]. */
struct pair {
    size_t rank, in, out; /* 0: there is none */
    float *a, *b;
};

static void free_pair(struct pair *pair)
{
    free(pair->a);
    free(pair->b);
}

/* A tensor of two dimensions to write, zeros, whose values are returned. */
static float *add(struct conversion *c, const char *name, size_t rows, size_t columns)
{
    float *values = xcalloc(array_size(rows, columns), sizeof *values);
    c->tensors = xrealloc(c->tensors, (c->count + 1) * sizeof *c->tensors);
    c->tensors[c->count++] = (struct safetensor){
        .name = xstrdup(name), .type = SAFETENSOR_F32, .rank = 2, .shape = {rows, columns}, .data = values};
    return values;
}

static status read_values(struct conversion *c, const struct safetensor *tensor, float *values, struct error *error)
{
    c->used++;
    TRY(safetensor_to_floats(tensor, values, error));
    return safetensors_expect_finite(c->from, tensor->name, values, safetensor_elements(tensor), error);
}

/* Both of them or none; B is [out, rank] in the file where it is transposed. The caller frees, after a failure too. */
static status read_pair(struct conversion *c, const char *name_a, const char *name_b, bool transposed,
                        struct pair *pair, struct error *error)
{
    const struct safetensor *a = safetensors_find(c->from, name_a), *b = safetensors_find(c->from, name_b);
    *pair = (struct pair){0};
    if (a == NULL && b == NULL)
        return OK;
    if (a == NULL || b == NULL || a->rank != 2 || b->rank != 2 || b->shape[transposed] != a->shape[0] ||
        a->shape[0] != (c->rank > 0 ? c->rank : a->shape[0]))
        return error_set(
            error, ERROR_FORMAT, "%s: expected %s and %s, matrices of one rank in the whole file, found %s and %s",
            safetensors_path(c->from), name_a, name_b, a != NULL ? shape_text(a->rank, a->shape).text : "none",
            b != NULL ? shape_text(b->rank, b->shape).text : "none");
    *pair = (struct pair){.rank = c->rank = a->shape[0], .in = a->shape[1], .out = b->shape[!transposed]};
    pair->a = xmalloc(array_size(pair->rank, pair->in * sizeof *pair->a));
    pair->b = xmalloc(array_size(pair->rank, pair->out * sizeof *pair->b));
    TRY(read_values(c, a, pair->a, error));
    if (!transposed)
        return read_values(c, b, pair->b, error);
    OWNED float *columns = xmalloc(array_size(pair->rank, pair->out * sizeof *columns));
    TRY(read_values(c, b, columns, error));
    for (size_t i = 0; i < pair->rank * pair->out; i++)
        pair->b[i % pair->rank * pair->out + i / pair->rank] = columns[i];
    return OK;
}

/* Every tensor of the file has to be one that was converted. */
static status expect_all_used(const struct conversion *c, const char *what, struct error *error)
{
    size_t count = safetensors_count(c->from);
    return c->used == count && count > 0
               ? OK
               : error_set(error, ERROR_FORMAT,
                           "%s: %zu of its %zu tensors are %s; a file with others, or without any, cannot be converted",
                           safetensors_path(c->from), c->used, count, what);
}

/* --- Deltas as an adapter of PEFT --- */

/* Rows of A [rank, in] and columns of B [out, rank], from those of every task; the first task names the matrices. */
static status stack(struct conversion *c, const struct place *place, struct error *error)
{
    char name_a[NAME_MOST + 48], name_b[NAME_MOST + 48];
    float *a = NULL, *b = NULL;
    for (size_t t = 0, in = 0, out = 0; t < c->tasks && (t == 0 || a != NULL); t++) {
        SCOPED(free_pair) struct pair pair = {0};
        snprintf(name_a, sizeof name_a, "%s.delta_a.%zu", place->own, t);
        snprintf(name_b, sizeof name_b, "%s.delta_b.%zu", place->own, t);
        TRY(read_pair(c, name_a, name_b, false, &pair, error));
        if (t == 0 && pair.rank > 0) {
            snprintf(name_a, sizeof name_a, "base_model.model.%s.lora_A.weight", place->module);
            snprintf(name_b, sizeof name_b, "base_model.model.%s.lora_B.weight", place->module);
            a = add(c, name_a, c->tasks * pair.rank, in = pair.in);
            b = add(c, name_b, out = pair.out, c->tasks * pair.rank);
            json_array_append_new(c->modules, json_string(place->module));
        }
        if (pair.in != in || pair.out != out)
            return error_set(error, ERROR_FORMAT, "%s: %s: expected the size of task 0's, found another or none",
                             safetensors_path(c->from), name_a);
        if (a != NULL)
            memcpy(a + t * pair.rank * in, pair.a, pair.rank * in * sizeof *a);
        for (size_t i = 0; a != NULL && i < pair.rank * out; i++)
            b[(i % out * c->tasks + t) * pair.rank + i / out] = pair.b[i];
    }
    return OK;
}

static status read_own(struct conversion *c, struct error *error)
{
    const char *gate = safetensors_metadata_value(c->from, "delta_gate"),
               *tasks = safetensors_metadata_value(c->from, "delta_tasks"),
               *scale = safetensors_metadata_value(c->from, "delta_scale");
    int64_t number;
    if (gate != NULL && strcmp(gate, gate_none.name) != 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "%s: its deltas have the gate %s between their halves, which PEFT's do not; only deltas without "
            "one can be converted",
            safetensors_path(c->from), gate);
    if (tasks == NULL || !parse_integer(tasks, &number) || number < 1 || number > 1 << 20 || scale == NULL ||
        !parse_real(scale, &c->scale) || c->scale == 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected low-rank deltas, as methods with the section delta save them, found none",
                         safetensors_path(c->from));
    c->tasks = (size_t)number;
    c->scale = (float)c->scale;
    return OK;
}

/* What other metadata say goes there and back. */
static status take_metadata(struct conversion *c, struct error *error)
{
    const char *key;
    for (size_t i = 0; (key = safetensors_metadata_key(c->from, i)) != NULL; i++) {
        if (strncmp(key, "delta_", 6) == 0 || strcmp(key, SAFETENSORS_DIGEST) == 0)
            continue;
        if (c->metadata_count + 5 >= METADATA_MOST)
            return error_set(error, ERROR_FORMAT, "%s: more than %d keys of metadata", safetensors_path(c->from),
                             METADATA_MOST - 5);
        c->metadata[c->metadata_count++] = (struct safetensors_metadata){key, safetensors_metadata_value(c->from, key)};
    }
    return OK;
}

static status write_peft(struct conversion *c, const char *folder, struct error *error)
{
    double rank = (double)(c->tasks * c->rank), alpha = c->scale * rank;
    json_t *number = alpha == floor(alpha) && fabs(alpha) < 1e9 ? json_integer((json_int_t)alpha) : json_real(alpha);
    SCOPED(json_decref_at)
    json_t *config = json_pack("{s:s, s:i, s:o, s:O, s:f, s:s, s:b, s:n, s:b, s:b, s:b, s:n}", "peft_type", "LORA", "r",
                               (int)rank, "lora_alpha", number, "target_modules", c->modules, "lora_dropout", 0.0,
                               "bias", "none", "fan_in_fan_out", 0, "task_type", "inference_mode", 1, "use_rslora", 0,
                               "use_dora", 0, "modules_to_save");
    OWNED char *text = json_dumps(config, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)),
               *weights = path_format("%s/adapter_model.safetensors", folder),
               *path = path_format("%s/adapter_config.json", folder);
    TRY(directory_create(folder, error));
    TRY(safetensors_write(weights, c->tensors, c->count, c->metadata, c->metadata_count, error));
    return file_write(path, text, strlen(text), error);
}

static status to_peft(struct conversion *c, const char *folder, struct error *error)
{
    TRY(read_own(c, error));
    TRY(take_metadata(c, error));
    for (size_t p = 0; p < PLACES; p++) {
        const struct place place = place_at(p);
        TRY(stack(c, &place, error));
    }
    TRY(expect_all_used(c, "halves of deltas", error));
    return write_peft(c, folder, error);
}

/* --- And back --- */

static bool is_set(const json_t *value)
{
    return json_is_true(value) || json_is_string(value) || json_object_size(value) + json_array_size(value) > 0;
}

static status read_config(struct conversion *c, const char *path, const json_t *config, struct error *error)
{
    static const char *const foreign[] = {"use_dora",      "fan_in_fan_out",  "rank_pattern",
                                          "alpha_pattern", "modules_to_save", "layer_replication"};
    const char *type = json_string_value(json_object_get(config, "peft_type")),
               *bias = json_string_value(json_object_get(config, "bias")),
               *start = json_string_value(json_object_get(config, "init_lora_weights"));
    double r = json_number_value(json_object_get(config, "r")),
           alpha = json_number_value(json_object_get(config, "lora_alpha"));
    if (type == NULL || strcmp(type, "LORA") != 0 || r < 1 || r > 1 << 20 || r != floor(r) || alpha == 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected \"peft_type\": \"LORA\" with r and lora_alpha, found %s, %g and %g", path,
                         type != NULL ? type : "none", r, alpha);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (is_set(json_object_get(config, foreign[i])))
            return error_set(error, ERROR_ARGUMENT,
                             "%s: %s is set, which deltas here do not have; only LoRA with one rank and scale can be "
                             "converted",
                             path, foreign[i]);
    if (bias != NULL && strcmp(bias, "none") != 0)
        return error_set(error, ERROR_ARGUMENT, "%s: bias is %s, but deltas here are of matrices alone", path, bias);
    if (start != NULL && strcmp(start, "gaussian") != 0 && strcmp(start, "eva") != 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "%s: init_lora_weights is %s, which may change the model's own weights, too; convert the adapter "
            "to plain LoRA with PEFT first (path_initial_model_for_weight_conversion)",
            path, start);
    c->rank = (size_t)r;
    c->scale = (float)(json_is_true(json_object_get(config, "use_rslora")) ? alpha / sqrt(r) : alpha / r);
    return OK;
}

static status read_config_file(struct conversion *c, const char *folder, struct error *error)
{
    OWNED char *path = path_format("%s/adapter_config.json", folder);
    SCOPED(json_decref_at) json_t *config = NULL;
    TRY(json_read(&config, path, 1 << 24, error));
    return read_config(c, path, config, error);
}

/* Ranks here are multiples of RANK_UNIT; the rows that are added are zero, and so is what they compute. */
static status unstack(struct conversion *c, const struct place *place, struct error *error)
{
    char name_a[NAME_MOST + 48], name_b[NAME_MOST + 48];
    size_t rank = (c->rank + RANK_UNIT - 1) / RANK_UNIT * RANK_UNIT;
    SCOPED(free_pair) struct pair pair = {0};
    snprintf(name_a, sizeof name_a, "base_model.model.%s.lora_A.weight", place->module);
    snprintf(name_b, sizeof name_b, "base_model.model.%s.lora_B.weight", place->module);
    TRY(read_pair(c, name_a, name_b, true, &pair, error));
    if (pair.rank == 0)
        return OK;
    snprintf(name_a, sizeof name_a, "%s.delta_a.0", place->own);
    snprintf(name_b, sizeof name_b, "%s.delta_b.0", place->own);
    memcpy(add(c, name_a, rank, pair.in), pair.a, pair.rank * pair.in * sizeof *pair.a);
    memcpy(add(c, name_b, rank, pair.out), pair.b, pair.rank * pair.out * sizeof *pair.b);
    return OK;
}

static status from_peft(struct conversion *c, const char *folder, const char *out, struct error *error)
{
    char scale[32];
    TRY(read_config_file(c, folder, error));
    TRY(take_metadata(c, error));
    for (size_t p = 0; p < PLACES; p++) {
        const struct place place = place_at(p);
        TRY(unstack(c, &place, error));
    }
    TRY(expect_all_used(c, "lora_A and lora_B of attention and MLP in CLIPModel", error));
    snprintf(scale, sizeof scale, "%.9g", c->scale);
    const struct safetensors_metadata own[] = {{"delta_tasks", "1"},
                                               {"delta_apart", "0"},
                                               {"delta_scale", scale},
                                               {"delta_gate", gate_none.name},
                                               {"delta_gate_numbers", "0 0 0"}};
    memcpy(c->metadata + c->metadata_count, own, sizeof own);
    return safetensors_write(out, c->tensors, c->count, c->metadata, c->metadata_count + sizeof own / sizeof *own,
                             error);
}

/* --- Command line --- */

static status run(const struct command_call *call, struct error *error)
{
    const char *in = call->arguments[0], *out = call->arguments[1];
    bool back = file_is_directory(in);
    OWNED char *path = back ? path_format("%s/adapter_model.safetensors", in) : xstrdup(in);
    SCOPED(safetensors_close_at) struct safetensors *file = NULL;
    SCOPED(free_conversion) struct conversion c = {.modules = json_array()};
    if (back && !text_ends_with(out, ".safetensors"))
        return error_set(error, ERROR_ARGUMENT,
                         "command line: convert peft: OUT: expected a name that ends with .safetensors, found %s", out);
    TRY(safetensors_open(&file, path, WEIGHTS_WHOLE, error));
    c.from = file;
    TRY(back ? from_peft(&c, in, out, error) : to_peft(&c, out, error));
    log_info(call->log, "%s: %zu tensors", out, c.count);
    return OK;
}

const struct command command_convert_peft = {
    .name = "convert peft",
    .arguments = "IN OUT",
    .summary = "write low-rank deltas as an adapter of PEFT, or such an adapter as deltas",
    .details =
        "IN is a file of low-rank deltas, as methods with the section delta save them, and OUT a folder, which gets\n"
        "adapter_model.safetensors and adapter_config.json with the names of transformers' CLIPModel. Or IN is such a\n"
        "folder, and OUT a .safetensors file, which mtil eval and predict take. Numbers stay as they are. The deltas\n"
        "of several tasks become one of a higher rank; deltas with a gate (sd_lora, moram) have no counterpart.\n",
    .example = "  mtil convert peft runs/mini-715a676ba7e1/seed1/adapters.safetensors lora\n"
               "  mtil convert peft lora adapters.safetensors\n",
    .least = 2,
    .most = 2,
    .run = run,
};
