/* mtil convert peft: low-rank deltas as an adapter of Hugging Face's PEFT for CLIPModel, and back. PEFT's W + lora_alpha / r · B A
 * (Hu et al. 2022, "LoRA") has B [out, r], which is [r, out] here. The deltas of several tasks add up: they are rows of one A and
 * columns of one B. */
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/deltas.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
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
    size_t rank;     /* of all matrices; 0: none was seen */
    double scale;    /* of B A */
    json_t *modules; /* names of those with a delta */
};

/* A tensor of two dimensions to write, zeros, whose values are returned. */
static float *add(struct conversion *c, const char *name, size_t rows, size_t columns)
{
    float *values = xcalloc(array_size(rows, columns), sizeof *values);
    c->tensors = xrealloc(c->tensors, (c->count + 1) * sizeof *c->tensors);
    c->tensors[c->count++] = (struct safetensor){
        .name = xstrdup(name), .type = SAFETENSOR_F32, .rank = 2, .shape = {rows, columns}, .data = values};
    return values;
}

/* values: for the caller to free. NULL: the file has no such tensor. */
static status read_half(struct conversion *c, const char *name, size_t shape[2], float **values, struct error *error)
{
    const struct safetensor *found = safetensors_find(c->from, name);
    *values = NULL;
    if (found == NULL)
        return OK;
    if (found->rank != 2)
        return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected two dimensions, found %d",
                         safetensors_path(c->from), name, found->rank);
    size_t n = safetensor_elements(found);
    memcpy(shape, found->shape, 2 * sizeof *shape);
    *values = xmalloc(array_size(n, sizeof **values));
    c->used++;
    status result = safetensor_to_floats(found, *values, error);
    NEXT(result, safetensors_expect_finite(c->from, name, *values, n, error));
    if (result != OK) {
        free(*values);
        *values = NULL;
    }
    return result;
}

static status expect_shape(const struct conversion *c, const char *name, const float *values, const size_t shape[2],
                           size_t rows, size_t columns, struct error *error)
{
    if (values != NULL && shape[0] == rows && shape[1] == columns)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: tensor '%s': expected [%zu, %zu], found %s", safetensors_path(c->from),
                     name, rows, columns, values != NULL ? shape_text(2, shape).text : "none");
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

/* Rows of A [rank, in] and columns of B [out, rank] from those of a task. */
static status stack(struct conversion *c, const struct place *place, size_t task, size_t tasks, float **a, float **b,
                    struct error *error)
{
    char names[2][NAME_MOST + 24], to[2][NAME_MOST + 48];
    float *halves[2] = {NULL, NULL};
    size_t shapes[2][2] = {{0}};
    status result = OK;
    for (int h = 0; h < 2; h++) {
        snprintf(names[h], sizeof names[h], "%s.delta_%c.%zu", place->own, "ab"[h], task);
        snprintf(to[h], sizeof to[h], "base_model.model.%s.lora_%c.weight", place->module, "AB"[h]);
        NEXT(result, read_half(c, names[h], shapes[h], &halves[h], error));
    }
    if (task > 0 || halves[0] != NULL) { /* the first names the matrices */
        size_t r = c->rank = c->rank > 0 ? c->rank : shapes[0][0],
               in = task > 0 ? c->tensors[c->count - 2].shape[1] : shapes[0][1],
               out = task > 0 ? c->tensors[c->count - 1].shape[0] : shapes[1][1];
        NEXT(result, expect_shape(c, names[0], halves[0], shapes[0], r, in, error));
        NEXT(result, expect_shape(c, names[1], halves[1], shapes[1], r, out, error));
        if (result == OK && task == 0) {
            *a = add(c, to[0], tasks * r, in);
            *b = add(c, to[1], out, tasks * r);
            json_array_append_new(c->modules, json_string(place->module));
        }
        if (result == OK)
            memcpy(*a + task * r * in, halves[0], r * in * sizeof **a);
        for (size_t i = 0; result == OK && i < r * out; i++)
            (*b)[i % out * tasks * r + task * r + i / out] = halves[1][i];
    }
    free(halves[0]);
    free(halves[1]);
    return result;
}

static status read_own(struct conversion *c, size_t *tasks, struct error *error)
{
    const char *gate = safetensors_metadata_value(c->from, "delta_gate"),
               *count = safetensors_metadata_value(c->from, "delta_tasks"),
               *scale = safetensors_metadata_value(c->from, "delta_scale");
    int64_t number;
    if (gate != NULL && strcmp(gate, gate_none.name) != 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "%s: its deltas have the gate %s between their halves, which PEFT's have not; only those without "
            "one can be converted",
            safetensors_path(c->from), gate);
    if (count == NULL || !parse_integer(count, &number) || number < 1 || number > 1 << 20 || scale == NULL ||
        !parse_real(scale, &c->scale) || c->scale == 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected low-rank deltas, as methods with the section delta save them, found none",
                         safetensors_path(c->from));
    *tasks = (size_t)number;
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

static status write_peft(struct conversion *c, size_t tasks, const char *folder, struct error *error)
{
    double rank = (double)(tasks * c->rank), alpha = c->scale * rank;
    json_t *config = json_pack(
        "{s:s, s:i, s:o, s:O, s:f, s:s, s:b, s:n, s:b, s:b, s:b, s:n}", "peft_type", "LORA", "r", (int)rank,
        "lora_alpha", alpha == floor(alpha) && fabs(alpha) < 1e9 ? json_integer((json_int_t)alpha) : json_real(alpha),
        "target_modules", c->modules, "lora_dropout", 0.0, "bias", "none", "fan_in_fan_out", 0, "task_type",
        "inference_mode", 1, "use_rslora", 0, "use_dora", 0, "modules_to_save");
    char *text = json_dumps(config, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)),
         *weights = path_format("%s/adapter_model.safetensors", folder),
         *path = path_format("%s/adapter_config.json", folder);
    status result = directory_create(folder, error);
    NEXT(result, safetensors_write(weights, c->tensors, c->count, c->metadata, c->metadata_count, error));
    NEXT(result, file_write(path, text, strlen(text), error));
    json_decref(config);
    free(text);
    free(weights);
    free(path);
    return result;
}

static status to_peft(struct conversion *c, const char *folder, struct error *error)
{
    size_t tasks;
    TRY(read_own(c, &tasks, error));
    TRY(take_metadata(c, error));
    for (size_t p = 0; p < PLACES; p++) {
        const struct place place = place_at(p);
        size_t before = c->count;
        float *a = NULL, *b = NULL;
        for (size_t t = 0; t == 0 || (t < tasks && c->count > before); t++)
            TRY(stack(c, &place, t, tasks, &a, &b, error));
    }
    TRY(expect_all_used(c, "halves of deltas", error));
    return write_peft(c, tasks, folder, error);
}

/* --- And back --- */

static bool is_empty(const json_t *value)
{
    return value == NULL || json_is_null(value) || json_is_false(value) ||
           json_object_size(value) + json_array_size(value) == 0;
}

static status read_config(struct conversion *c, const char *path, const json_t *config, struct error *error)
{
    static const char *const plain[] = {"use_dora", "fan_in_fan_out", "rank_pattern", "alpha_pattern",
                                        "modules_to_save"};
    const char *type = json_string_value(json_object_get(config, "peft_type")),
               *bias = json_string_value(json_object_get(config, "bias"));
    double r = json_number_value(json_object_get(config, "r")),
           alpha = json_number_value(json_object_get(config, "lora_alpha"));
    if (type == NULL || strcmp(type, "LORA") != 0 || r < 1 || r > 1 << 20 || r != floor(r) || alpha == 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: expected \"peft_type\": \"LORA\" with r and lora_alpha, found %s, %g and %g", path,
                         type != NULL ? type : "none", r, alpha);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        const json_t *value = json_object_get(config, plain[i]);
        if (json_is_true(value) || !is_empty(value))
            return error_set(error, ERROR_ARGUMENT,
                             "%s: %s is set, which deltas here do not have; only LoRA with one rank and scale can be "
                             "converted",
                             path, plain[i]);
    }
    if (bias != NULL && strcmp(bias, "none") != 0)
        return error_set(error, ERROR_ARGUMENT, "%s: bias is %s, but deltas here are of matrices alone", path, bias);
    c->rank = (size_t)r;
    c->scale = (float)(json_is_true(json_object_get(config, "use_rslora")) ? alpha / sqrt(r) : alpha / r);
    return OK;
}

static status read_config_file(struct conversion *c, const char *folder, struct error *error)
{
    char *path = path_format("%s/adapter_config.json", folder);
    struct bytes bytes = {0};
    json_error_t wrong;
    status result = file_read(path, 1 << 24, &bytes, error);
    json_t *config = result == OK ? json_loadb((const char *)bytes.data, bytes.size, 0, &wrong) : NULL;
    if (result == OK && config == NULL)
        result = error_set(error, ERROR_FORMAT, "%s:%d: expected JSON: %s", path, wrong.line, wrong.text);
    NEXT(result, read_config(c, path, config, error));
    json_decref(config);
    bytes_free(&bytes);
    free(path);
    return result;
}

/* Ranks here are multiples of RANK_UNIT; the rows that are added are zero, and so is what they compute. */
static status unstack(struct conversion *c, const struct place *place, struct error *error)
{
    char names[2][NAME_MOST + 48], to[2][NAME_MOST + 24];
    float *halves[2] = {NULL, NULL};
    size_t shapes[2][2] = {{0}}, rank = (c->rank + RANK_UNIT - 1) / RANK_UNIT * RANK_UNIT;
    status result = OK;
    for (int h = 0; h < 2; h++) {
        snprintf(names[h], sizeof names[h], "base_model.model.%s.lora_%c.weight", place->module, "AB"[h]);
        snprintf(to[h], sizeof to[h], "%s.delta_%c.0", place->own, "ab"[h]);
        NEXT(result, read_half(c, names[h], shapes[h], &halves[h], error));
    }
    if (result == OK && (halves[0] != NULL || halves[1] != NULL)) {
        size_t in = shapes[0][1], out = shapes[1][0];
        result = expect_shape(c, names[0], halves[0], shapes[0], c->rank, in, error);
        NEXT(result, expect_shape(c, names[1], halves[1], shapes[1], out, c->rank, error));
        float *a = result == OK ? add(c, to[0], rank, in) : NULL, *b = result == OK ? add(c, to[1], rank, out) : NULL;
        if (result == OK)
            memcpy(a, halves[0], c->rank * in * sizeof *a);
        for (size_t i = 0; result == OK && i < out * c->rank; i++)
            b[i % c->rank * out + i / c->rank] = halves[1][i];
    }
    free(halves[0]);
    free(halves[1]);
    return result;
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
    char *path = back ? path_format("%s/adapter_model.safetensors", in) : xstrdup(in);
    struct safetensors *file = NULL;
    struct conversion c = {.modules = json_array()};
    status result =
        !back || text_ends_with(out, ".safetensors")
            ? safetensors_open(&file, path, error)
            : error_set(error, ERROR_ARGUMENT,
                        "command line: convert peft: OUT: expected a name that ends with .safetensors, found %s", out);
    c.from = file;
    NEXT(result, back ? from_peft(&c, in, out, error) : to_peft(&c, out, error));
    if (result == OK)
        log_info(call->log, "%s: %zu tensors", out, c.count);
    for (size_t i = 0; i < c.count; i++) {
        free((char *)c.tensors[i].name);
        free((float *)c.tensors[i].data);
    }
    free(c.tensors);
    json_decref(c.modules);
    safetensors_close(file);
    free(path);
    return result;
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
