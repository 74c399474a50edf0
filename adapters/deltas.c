#include "adapters/deltas.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/scope.h"

const char *const delta_matrix_names[DELTA_MATRICES] = {"query", "key", "value", "output", "fc", "proj"};

const struct delta_gate gate_none = {.name = "none"};

#define ENTRY(name) &gate_##name,
static const struct delta_gate *const gates[] = {DELTA_GATES(ENTRY)};
#undef ENTRY

REGISTRY_FIND(delta_gate, struct delta_gate, gates, "deltas", "gate")

status delta_multiply(struct backend *backend, struct matrix a, struct matrix b, struct matrix out, struct error *error)
{
    return backend->ops->multiply(
        backend, &(struct multiply){.n = out.rows * out.columns, .a = a.data, .b = b.data, .out = out.data}, error);
}

/* --- Settings --- */

const struct option delta_options[] = {
    OPTION_NUMBER(INTEGER, "rank", 4, 4096, "16", "rank of a task's delta of a matrix, a multiple of 4",
                  INTO(struct delta_settings, rank), .synonyms = "r|lora_rank|lora_r"),
    OPTION_NUMBER(REAL, "scale", 1e-6, 1e6, "1",
                  "factor of the product of A and B; the code of LoRA writes lora_alpha / rank",
                  INTO(struct delta_settings, scale)),
    OPTION(LIST, "matrices", "query,key,value,output",
           "matrices of a block that have deltas: query, key, value, output, and fc and proj of the MLP",
           .synonyms = "target_modules"),
    OPTION(LIST, "blocks", "all",
           "blocks with deltas: all, first_N, last_N, every_N, or a list of numbers from 0; image.3 or text.3 names a "
           "block of one tower"),
    OPTION_ONE_OF("towers", ADAPTED_TOWERS_CHOICES, "both", "towers with deltas",
                  INTO(struct delta_settings, place.towers)),
    OPTION_ONE_OF("start", "uniform|normal", "uniform",
                  "start of A: uniform within 1 / sqrt(inputs), as the code of LoRA, or normal of deviation 1 / rank; "
                  "B starts at 0",
                  INTO(struct delta_settings, start)),
    OPTION_ONE_OF("train", "both|a|b", "both", "trained halves of the product, where the method leaves the choice"),
    {0}};

static status read_matrices(unsigned *matrices, const struct options *options, struct error *error)
{
    *matrices = 0;
    for (size_t i = 0; i < options_list_size(options, "matrices"); i++) {
        const char *name = options_list_item(options, "matrices", i);
        size_t m = 0;
        while (m < DELTA_MATRICES && strcmp(name, delta_matrix_names[m]) != 0)
            m++;
        if (m == DELTA_MATRICES)
            return error_set(error, ERROR_ARGUMENT,
                             "suite: delta.matrices: expected query, key, value, output, fc or proj, found \"%s\"",
                             name);
        *matrices |= 1U << m;
    }
    return *matrices != 0 ? OK : error_set(error, ERROR_ARGUMENT, "suite: delta.matrices is empty; name at least one");
}

status delta_settings_of(struct delta_settings *s, const struct options *o, size_t tasks, struct error *error)
{
    static const unsigned halves[] = {DELTA_A | DELTA_B, DELTA_A, DELTA_B};
    size_t count;
    *s = (struct delta_settings){.tasks = tasks, .trained = halves[options_choice(o, "train")]};
    options_fill(o, delta_options, s);
    OWNED const char **words = options_list_items(o, "blocks", &count);
    status result = block_choice_read(&s->place.blocks, words, count, error);
    if (result == OK && s->place.blocks.rule == BLOCKS_BY_SCORE)
        result = error_set(error, ERROR_ARGUMENT, "by_score_N is a choice of experts' blocks; expected another one");
    if (result != OK)
        return error_context(error, "suite: delta.blocks");
    if (s->rank % 4 != 0)
        return error_set(error, ERROR_ARGUMENT, "suite: delta.rank must be a multiple of 4, found %zu", s->rank);
    return read_matrices(&s->matrices, o, error);
}

/* --- Memory --- */

static struct linear *layer_of(struct block *block, enum delta_matrix matrix)
{
    return matrix <= DELTA_VALUE    ? &block->in_proj
           : matrix == DELTA_OUTPUT ? &block->out_proj
           : matrix == DELTA_FC     ? &block->c_fc
                                    : &block->c_proj;
}

struct delta_magnitudes delta_magnitudes(const struct deltas *d)
{
    const struct delta_settings *s = &d->settings;
    return s->gate == &gate_magnitude ? (struct delta_magnitudes){.count = s->tasks, .rows = s->tasks * s->rank}
           : s->gate == &gate_importance
               ? (struct delta_magnitudes){.first = d->task * s->rank, .count = s->rank, .rows = s->rank}
               : (struct delta_magnitudes){0};
}

static bool have_magnitudes(const struct deltas *d)
{
    return delta_magnitudes(d).count > 0;
}

static status declare(struct deltas *d, struct delta_entry *e, struct error *error)
{
    size_t t = d->settings.tasks, r = d->settings.rank;
    char name[96];
    int used = snprintf(name, sizeof name, "%stransformer.resblocks.%zu.%s.delta_",
                        e->tower == TOWER_IMAGE ? "visual." : "", e->block, delta_matrix_names[e->matrix]);
    snprintf(name + used, sizeof name - (size_t)used, "a");
    TRY(parameters_add(d->parameters, name, 3, (size_t[]){t, r, e->in}, t, 0, &e->a, error));
    snprintf(name + used, sizeof name - (size_t)used, "b");
    TRY(parameters_add(d->parameters, name, 3, (size_t[]){t, r, e->out}, t, t, &e->b, error));
    snprintf(name + used, sizeof name - (size_t)used, "magnitude");
    int axes = d->settings.gate == &gate_importance ? 2 : 1;
    return have_magnitudes(d)
               ? parameters_add(d->parameters, name, axes, (size_t[]){t, r}, t, 2 * t, &e->magnitude, error)
               : OK;
}

static status add_block(struct deltas *d, enum tower tower, size_t block, struct error *error)
{
    for (int m = 0; m < DELTA_MATRICES; m++) {
        struct linear *linear = layer_of(&d->clip->towers[tower].blocks[block], (enum delta_matrix)m);
        struct delta_entry *e = &d->list[d->count];
        if (!(d->settings.matrices >> m & 1))
            continue;
        size_t out = m <= DELTA_VALUE ? linear->out / 3 : linear->out;
        d->each[d->count] = (struct delta){
            .first = m <= DELTA_VALUE ? (size_t)m * out : 0,
            .out = out,
            .scale = d->settings.scale,
            .gate = d->settings.gate != NULL && d->settings.gate->forward != NULL ? d->settings.gate : NULL,
            .state = e};
        *e = (struct delta_entry){.deltas = d,
                                  .tower = tower,
                                  .block = block,
                                  .in = linear->in,
                                  .out = out,
                                  .matrix = (enum delta_matrix)m,
                                  .linear = linear,
                                  .delta = &d->each[d->count]};
        if (linear->delta_count++ == 0)
            linear->deltas = e->delta;
        d->count++;
        TRY(declare(d, e, error));
    }
    return OK;
}

static status take_masks(struct deltas *d, struct arena *arena, struct error *error)
{
    struct delta_magnitudes m = delta_magnitudes(d);
    size_t rank = d->settings.rank, all = d->settings.tasks * rank,
           n = m.count > 0 ? m.count * m.rows * m.rows : (all + rank) * all;
    struct tensor masks;
    TRY(tensor_take(&masks, arena, TENSOR_F32, "masks", 1, &n, error));
    OWNED float *values = xcalloc(n, sizeof *values);
    for (size_t r = 0; r < m.rows; r++)
        values[(r / (m.rows / m.count) * m.rows + r) * m.rows + r] = 1;
    for (size_t r = 0; m.count == 0 && r < all; r++)
        if (r % rank < rank - 1)
            values[(r / rank * rank + rank - 1) * all + r] = 1;
    for (size_t r = 0; m.count == 0 && r < rank - 1; r++)
        values[(all + r) * all + r] = 1;
    d->masks = masks.data;
    return d->clip->backend->ops->upload(d->clip->backend, masks.data, values, tensor_bytes(&masks), error);
}

status deltas_create(struct deltas **result, struct clip *clip, struct arena *arena,
                     const struct delta_settings *settings, enum parameters_mode mode, struct error *error)
{
    SCOPED(deltas_destroy_at) struct deltas *d = xcalloc(1, sizeof *d);
    *d = (struct deltas){.clip = clip, .settings = *settings};
    size_t most = DELTA_MATRICES * (clip->towers[TOWER_IMAGE].count + clip->towers[TOWER_TEXT].count);
    d->list = xcalloc(most, sizeof *d->list);
    d->each = xcalloc(most, sizeof *d->each);
    parameters_create(&d->parameters, clip->backend);
    TRY(adapter_place_check("delta", &d->settings.place, &clip->dimensions, error));
    TRY(clip_digest(clip, d->model, error));
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < clip->towers[t].count; b++)
            if (adapter_place_has(&d->settings.place, &clip->dimensions, (enum tower)t, b))
                TRY(add_block(d, (enum tower)t, b, error));
    if (have_magnitudes(d) || d->settings.gate == &gate_by_input)
        TRY(take_masks(d, arena, error));
    TRY(parameters_allocate(d->parameters, arena, mode, error));
    *result = TAKE(d);
    return OK;
}

void deltas_destroy(struct deltas *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->count; i++)
        d->list[i].linear->delta_count = 0;
    parameters_destroy(d->parameters);
    free(d->list);
    free(d->each);
    free(d);
}

enum { START_NUMBER = 8 }; /* of these draws among those with RNG_INIT */

/* Uniform within ± bound, or with bound 0 normal of that deviation; stream: among those of START_NUMBER */
static status draw(struct deltas *d, size_t parameter, uint64_t seed, size_t stream, float bound, float deviation,
                   struct error *error)
{
    const struct parameter *p = &d->parameters->list[parameter];
    struct rng rng = rng_make(seed, RNG_INIT, START_NUMBER, (uint32_t)stream);
    OWNED float *values = xmalloc(array_size(p->size, sizeof *values));
    for (size_t k = 0; k < p->size; k++)
        values[k] = bound > 0 ? bound * (2 * rng_uniform(&rng, k) - 1) : rng_normal(&rng, k) * deviation;
    return parameters_upload(d->parameters, p, values, error);
}

status deltas_initialize(struct deltas *d, uint64_t seed, struct error *error)
{
    for (size_t i = 0; i < d->count; i++) {
        const struct delta_entry *e = &d->list[i];
        float bound = d->settings.start == DELTA_UNIFORM ? 1 / sqrtf((float)e->in) : 0;
        TRY(draw(d, e->a, seed, i, bound, 1 / (float)d->settings.rank, error));
        if (d->settings.gate == &gate_importance)
            TRY(draw(d, e->magnitude, seed, d->count + i, 0, 1, error));
    }
    return OK;
}

bool deltas_in_tower(const struct deltas *d, enum tower tower)
{
    for (size_t i = 0; d != NULL && i < d->count; i++)
        if (d->list[i].tower == tower)
            return true;
    return false;
}

/* --- A task --- */

/* Where a part of a task begins in the group. */
static size_t place_of(const struct deltas *d, const struct delta_entry *e, enum delta_part part, size_t task,
                       size_t *n)
{
    const struct parameter *p = &d->parameters->list[part == DELTA_A ? e->a : part == DELTA_B ? e->b : e->magnitude];
    *n = p->size / d->settings.tasks;
    return p->offset + task * *n;
}

static float *weight_of(struct deltas *d, const struct delta_entry *e)
{
    struct parameters *towers = d->clip->parameters;
    size_t offset = (size_t)(e->linear->weight.value - towers->values) + e->delta->first * e->in;
    return parameters_write(towers, offset, e->out * e->in);
}

status deltas_add_product(struct deltas *d, const struct delta_entry *e, size_t task, float factor, struct error *error)
{
    size_t n, a = place_of(d, e, DELTA_A, task, &n), b = place_of(d, e, DELTA_B, task, &n), rank = d->settings.rank;
    float *values = (float *)d->parameters->values;
    return d->clip->backend->ops->gemm(d->clip->backend,
                                       &(struct gemm){.a = matrix_rows(values + b, rank, e->out),
                                                      .transpose_a = true,
                                                      .b = matrix_rows(values + a, rank, e->in),
                                                      .scale = factor * d->settings.scale,
                                                      .exact = true,
                                                      .accumulate = true,
                                                      .out = matrix_rows(weight_of(d, e), e->out, e->in)},
                                       error);
}

static void use_rows(struct deltas *d, struct delta_entry *e, unsigned parts)
{
    struct parameters *p = d->parameters;
    size_t rank = d->settings.rank, n, a = place_of(d, e, DELTA_A, d->apart, &n),
           b = place_of(d, e, DELTA_B, d->apart, &n);
    bool trained = p->gradients != NULL && parts != 0;
    e->delta->a = (float *)p->values + a;
    e->delta->b = (float *)p->values + b;
    e->delta->rows = (d->task + 1 - d->apart) * rank;
    e->delta->trained = rank;
    e->delta->trains = trained;
    e->delta->da = trained && parts & DELTA_A ? p->gradients + place_of(d, e, DELTA_A, d->task, &n) : NULL;
    e->delta->db = trained && parts & DELTA_B ? p->gradients + place_of(d, e, DELTA_B, d->task, &n) : NULL;
}

/* In the order of the flags: A, B and magnitude of each task. */
static status set_flags(struct deltas *d, unsigned parts, struct error *error)
{
    struct parameters *p = d->parameters;
    size_t tasks = d->settings.tasks;
    if (p->flags == NULL)
        return OK;
    OWNED int32_t *flags = xcalloc(p->flags_count, sizeof *flags);
    flags[d->task] = (parts & DELTA_A) != 0;
    flags[tasks + d->task] = (parts & DELTA_B) != 0;
    for (size_t k = d->apart; have_magnitudes(d) && k <= d->task; k++)
        flags[2 * tasks + k] = (parts & DELTA_MAGNITUDE) != 0;
    return d->clip->backend->ops->upload(d->clip->backend, p->flags, flags, p->flags_count * sizeof *flags, error);
}

status deltas_begin_task(struct deltas *d, size_t task, size_t apart, unsigned parts, struct error *error)
{
    for (; d->merged < apart; d->merged++)
        for (size_t i = 0; i < d->count; i++)
            TRY(deltas_add_product(d, &d->list[i], d->merged, 1, error));
    return deltas_use(d, task, apart, parts, error);
}

status deltas_use(struct deltas *d, size_t task, size_t apart, unsigned parts, struct error *error)
{
    d->apart = apart;
    d->task = task;
    for (size_t i = 0; i < d->count; i++)
        use_rows(d, &d->list[i], parts);
    return set_flags(d, parts, error);
}

/* --- Values --- */

status deltas_read(const struct deltas *d, const struct delta_entry *e, enum delta_part part, size_t task,
                   float *values, struct error *error)
{
    size_t n, offset = place_of(d, e, part, task, &n);
    return d->clip->backend->ops->download(d->clip->backend, values, d->parameters->values + offset, n * sizeof *values,
                                           error);
}

status deltas_write(struct deltas *d, const struct delta_entry *e, enum delta_part part, size_t task,
                    const float *values, struct error *error)
{
    size_t n, offset = place_of(d, e, part, task, &n);
    return d->clip->backend->ops->upload(d->clip->backend, parameters_write(d->parameters, offset, n), values,
                                         n * sizeof *values, error);
}

status deltas_read_weight(const struct deltas *d, const struct delta_entry *e, float *values, struct error *error)
{
    return d->clip->backend->ops->download(d->clip->backend, values, e->linear->weight.value + e->delta->first * e->in,
                                           e->out * e->in * sizeof *values, error);
}

/* --- Files --- */

status deltas_save(const struct deltas *d, const struct group_extra *extra, const char *path, struct error *error)
{
    char tasks[24], apart[24], scale[32], numbers[96];
    const float *of_gate = d->settings.gate_numbers;
    size_t count;
    OWNED struct group_tensor *list = group_tensors_of_tasks(d->parameters, d->task + 1, &count);
    snprintf(tasks, sizeof tasks, "%zu", d->task + 1);
    snprintf(apart, sizeof apart, "%zu", d->apart);
    snprintf(scale, sizeof scale, "%.9g", (double)d->settings.scale);
    snprintf(numbers, sizeof numbers, "%.9g %.9g %.9g", (double)of_gate[0], (double)of_gate[1], (double)of_gate[2]);
    const struct safetensors_metadata own[] = {
        {"delta_tasks", tasks},
        {"delta_apart", apart},
        {"delta_scale", scale},
        {"delta_gate", d->settings.gate != NULL ? d->settings.gate->name : gate_none.name},
        {"delta_gate_numbers", numbers}};
    return group_tensors_save(list, count, own, sizeof own / sizeof *own, extra, path, error);
}

bool delta_file_is(const struct safetensors *file)
{
    return safetensors_metadata_value(file, "delta_tasks") != NULL;
}

static status read_number(const struct safetensors *file, const char *key, size_t *number, struct error *error)
{
    const char *text = safetensors_metadata_value(file, key);
    int64_t value;
    if (text == NULL || !parse_integer(text, &value) || value < 0 || value > 1 << 20)
        return error_set(error, ERROR_FORMAT, "%s: metadata %s: expected a whole number from 0, found %s",
                         safetensors_path(file), key, text != NULL ? text : "none");
    *number = (size_t)value;
    return OK;
}

static status read_gate(const struct safetensors *file, struct delta_settings *s, struct error *error)
{
    const char *gate = safetensors_metadata_value(file, "delta_gate"),
               *text = safetensors_metadata_value(file, "delta_gate_numbers");
    TRY(delta_gate_find(&s->gate, gate != NULL ? gate : gate_none.name, error));
    char *end = (char *)text;
    for (size_t i = 0; text != NULL && i < DELTA_GATE_NUMBERS; i++)
        s->gate_numbers[i] = strtof(end, &end);
    return text != NULL && *end == '\0'
               ? OK
               : error_set(error, ERROR_FORMAT, "%s: metadata delta_gate_numbers: expected three numbers, found %s",
                           safetensors_path(file), text != NULL ? text : "none");
}

/* Matrices and blocks are those that the first task's tensors name. */
static status read_settings(const struct safetensors *file, const struct clip *clip, struct delta_settings *s,
                            size_t *apart, struct error *error)
{
    const char *text = safetensors_metadata_value(file, "delta_scale");
    double scale = 0;
    if (text == NULL || !parse_real(text, &scale) || fabs(scale) > FLT_MAX || (float)scale == 0)
        return error_set(error, ERROR_FORMAT, "%s: metadata delta_scale: expected a float that is not 0, found %s",
                         safetensors_path(file), text != NULL ? text : "none");
    *s = (struct delta_settings){.place.blocks.rule = BLOCKS_LISTED, .scale = (float)scale};
    TRY(read_number(file, "delta_tasks", &s->tasks, error));
    TRY(read_number(file, "delta_apart", apart, error));
    TRY(read_gate(file, s, error));
    char name[128];
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < clip->towers[t].count; b++)
            for (int m = 0; m < DELTA_MATRICES; m++) {
                const char *part = delta_matrix_names[m], *visual = t == TOWER_IMAGE ? "visual." : "";
                snprintf(name, sizeof name, "%stransformer.resblocks.%zu.%s.delta_a.0", visual, b, part);
                const struct safetensor *found = safetensors_find(file, name);
                if (found == NULL)
                    continue;
                s->rank = found->shape[0];
                s->matrices |= 1U << m;
                s->place.blocks.listed[t] |= (uint64_t)1 << b;
            }
    if (s->matrices != 0 && s->tasks > 0 && *apart <= s->tasks)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: expected deltas of this model's matrices, with their number of tasks; the file is damaged, or "
        "belongs to another model",
        safetensors_path(file));
}

status deltas_open(struct deltas **deltas, struct clip *clip, struct arena *arena, const struct safetensors *file,
                   struct error *error)
{
    SCOPED(deltas_destroy_at) struct deltas *d = NULL;
    struct delta_settings settings;
    size_t apart = 0, count;
    TRY(read_settings(file, clip, &settings, &apart, error));
    TRY(deltas_create(&d, clip, arena, &settings, PARAMETERS_FROZEN, error));
    OWNED struct group_tensor *list = group_tensors_of_tasks(d->parameters, settings.tasks, &count);
    TRY(group_tensors_load(list, count, file, "", GROUP_COMPLETE, error));
    TRY(deltas_begin_task(d, settings.tasks - 1, apart, 0, error));
    *deltas = TAKE(d);
    return OK;
}
