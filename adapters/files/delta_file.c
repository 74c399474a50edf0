#include "adapters/files/delta_file.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapters/gates/gate.h"
#include "core/text.h"

status deltas_save(const struct deltas *d, const struct group_extra *extra, const char *path, struct error *error)
{
    char tasks[24], apart[24], scale[32], numbers[96];
    const float *of_gate = d->settings.gate_numbers;
    size_t count;
    struct group_tensor *list = group_tensors_of_tasks(d->parameters, d->task + 1, &count);
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
    status result = group_tensors_save(list, count, own, sizeof own / sizeof *own, extra, path, error);
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
    struct delta_settings settings;
    size_t apart = 0, count;
    TRY(read_settings(file, clip, &settings, &apart, error));
    TRY(deltas_create(deltas, clip, arena, &settings, PARAMETERS_FROZEN, error));
    struct group_tensor *list = group_tensors_of_tasks((*deltas)->parameters, settings.tasks, &count);
    status result = group_tensors_load(list, count, file, "", GROUP_COMPLETE, error);
    free(list);
    NEXT(result, deltas_begin_task(*deltas, settings.tasks - 1, apart, 0, error));
    if (result == OK)
        return OK;
    deltas_destroy(*deltas);
    *deltas = NULL;
    return result;
}
