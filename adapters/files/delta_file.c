#include "adapters/files/delta_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/gates/gate.h"
#include "core/alloc.h"
#include "core/text.h"

enum { OWN_KEYS = 5 };

/* A task's share of a tensor of the group. */
struct slice {
    const struct parameter *p;
    size_t task, n;
    char name[128];
};

static size_t slices(const struct deltas *d, size_t tasks)
{
    return d->parameters->count * tasks;
}

static struct slice slice_at(const struct deltas *d, size_t index)
{
    size_t count = d->parameters->count;
    struct slice s = {.p = &d->parameters->list[index % count], .task = index / count};
    s.n = s.p->size / d->settings.tasks;
    snprintf(s.name, sizeof s.name, "%s.%zu", s.p->name, s.task);
    return s;
}

static struct safetensor tensor_of(const struct slice *s, const float *values)
{
    return (struct safetensor){.name = s->name,
                               .type = SAFETENSOR_F32,
                               .rank = s->p->rank > 1 ? 2 : 1,
                               .shape = {s->p->rank > 1 ? s->p->shape[1] : 1, s->p->shape[2]},
                               .data = values};
}

static status write(const struct deltas *d, struct slice *list, struct safetensor *tensors, float *values,
                    const struct safetensors_metadata *metadata, size_t count, const char *path, struct error *error)
{
    const struct parameters *p = d->parameters;
    size_t tensor_count = slices(d, d->task + 1);
    char tasks[24], apart[24], scale[32], numbers[96];
    const float *of_gate = d->settings.gate_numbers;
    struct safetensors_metadata all[OWN_KEYS + DELTA_EXTRA_KEYS];
    TRY(p->backend->ops->download(p->backend, values, p->values, p->values_count * sizeof *values, error));
    for (size_t i = 0; i < tensor_count; i++) {
        list[i] = slice_at(d, i);
        tensors[i] = tensor_of(&list[i], values + list[i].p->offset + list[i].task * list[i].n);
        if (not_finite_at(tensors[i].data, list[i].n) < list[i].n)
            return error_set(error, ERROR_FORMAT, "%s: tensor '%s' is not finite; nothing is written", path,
                             list[i].name);
    }
    snprintf(tasks, sizeof tasks, "%zu", d->task + 1);
    snprintf(apart, sizeof apart, "%zu", d->apart);
    snprintf(scale, sizeof scale, "%.9g", (double)d->settings.scale);
    snprintf(numbers, sizeof numbers, "%.9g %.9g %.9g", (double)of_gate[0], (double)of_gate[1], (double)of_gate[2]);
    const struct safetensors_metadata own[OWN_KEYS] = {
        {"delta_tasks", tasks},
        {"delta_apart", apart},
        {"delta_scale", scale},
        {"delta_gate", d->settings.gate != NULL ? d->settings.gate->name : gate_none.name},
        {"delta_gate_numbers", numbers}};
    memcpy(all, own, sizeof own);
    for (size_t i = 0; i < count && i < DELTA_EXTRA_KEYS; i++)
        all[OWN_KEYS + i] = metadata[i];
    return safetensors_write(path, tensors, tensor_count, all, OWN_KEYS + count, error);
}

status deltas_save(const struct deltas *d, const struct safetensors_metadata *metadata, size_t count, const char *path,
                   struct error *error)
{
    struct slice *list = xcalloc(slices(d, d->task + 1), sizeof *list);
    struct safetensor *tensors = xcalloc(slices(d, d->task + 1), sizeof *tensors);
    float *values = xmalloc(array_size(d->parameters->values_count, sizeof *values));
    status result = write(d, list, tensors, values, metadata, count, path, error);
    free(values);
    free(tensors);
    free(list);
    return result;
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
    const char *scale = safetensors_metadata_value(file, "delta_scale");
    *s = (struct delta_settings){.place.blocks.rule = BLOCKS_LISTED, .scale = scale != NULL ? strtof(scale, NULL) : 0};
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
    if (s->matrices != 0 && s->tasks > 0 && *apart <= s->tasks && s->scale != 0)
        return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s: expected deltas of this model's matrices, with their number of tasks and "
                     "a scale that is not 0; the file is damaged, or belongs to another model",
                     safetensors_path(file));
}

static status load(struct deltas *d, const struct safetensors *file, struct error *error)
{
    struct parameters *p = d->parameters;
    float *values = xcalloc(p->values_count, sizeof *values);
    status result = OK;
    for (size_t i = 0; result == OK && i < slices(d, d->settings.tasks); i++) {
        struct slice s = slice_at(d, i);
        struct safetensor expected = tensor_of(&s, NULL);
        const struct safetensor *found;
        float *to = values + s.p->offset + s.task * s.n;
        result = safetensors_expect(file, s.name, SAFETENSOR_F32, expected.rank, expected.shape, &found, error);
        NEXT(result, safetensor_to_floats(found, to, error));
        NEXT(result, safetensors_expect_finite(file, s.name, to, s.n, error));
    }
    NEXT(result,
         p->backend->ops->upload(p->backend, parameters_write_all(p), values, p->values_count * sizeof *values, error));
    free(values);
    return result;
}

status deltas_open(struct deltas **deltas, struct clip *clip, struct arena *arena, const struct safetensors *file,
                   struct error *error)
{
    struct delta_settings settings;
    size_t apart = 0;
    TRY(read_settings(file, clip, &settings, &apart, error));
    TRY(deltas_create(deltas, clip, arena, &settings, PARAMETERS_FROZEN, error));
    status result = load(*deltas, file, error);
    NEXT(result, deltas_begin_task(*deltas, settings.tasks - 1, apart, 0, error));
    if (result == OK)
        return OK;
    deltas_destroy(*deltas);
    *deltas = NULL;
    return result;
}
