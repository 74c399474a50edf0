#include "tests/models/files/tensor_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "tests/test.h"

void tensor_set_copy(struct tensor_set *set, const struct safetensors *file)
{
    assert_true(safetensors_count(file) < TENSOR_SET_MOST);
    for (; set->count < safetensors_count(file); set->count++)
        set->tensors[set->count] = *safetensors_at(file, set->count);
}

static float *transposed(const float *values, size_t rows, size_t columns)
{
    float *turned = xmalloc(rows * columns * sizeof *turned);
    for (size_t i = 0; i < rows * columns; i++)
        turned[i % columns * rows + i / columns] = values[i];
    return turned;
}

static bool is_padded(const char *name)
{
    static const char *const padded[] = {"probe", "latent", "pos_embed", "logit_scale", "logit_bias"};
    for (size_t i = 0; i < sizeof padded / sizeof *padded; i++)
        if (strstr(name, padded[i]) != NULL)
            return true;
    return false;
}

void tensor_set_rename(struct tensor_set *set, const struct safetensors *file, const struct clip_dimensions *dimensions,
                       enum clip_naming naming)
{
    bool siglip = dimensions->pool_hidden > 0;
    for (size_t i = 0; i < clip_tensors(dimensions); i++) {
        struct clip_tensor t = clip_tensor_at(dimensions, naming, i);
        const struct safetensor *own = safetensors_find(file, t.openai);
        assert_non_null(own);
        const float *values = own->data;
        if (t.transposed)
            values = set->turned[i] = transposed(values, t.shape[0], t.shape[1]);
        for (size_t part = 0; part < t.parts; part++) {
            assert_true(set->count < TENSOR_SET_MOST);
            struct safetensor *out = &set->tensors[set->count];
            char *name = set->names[set->count++];
            snprintf(name, sizeof *set->names, "%s", t.names[part]);
            *out = (struct safetensor){.name = name, .type = SAFETENSOR_F32, .data = values};
            size_t rows = t.parts > 1 ? t.rows[part] : t.shape[0];
            if (siglip && naming != CLIP_OPENAI && is_padded(name))
                out->shape[out->rank++] = 1;
            for (int r = 0; r < t.rank; r++)
                out->shape[out->rank++] = t.transposed ? t.shape[1 - r] : r == 0 ? rows : t.shape[r];
            values += t.parts > 1 ? safetensor_elements(out) : 0;
        }
    }
}

struct safetensor *tensor_set_find(struct tensor_set *set, const char *name)
{
    size_t i = 0;
    while (i < set->count && strcmp(set->tensors[i].name, name) != 0)
        i++;
    if (i == set->count)
        fail_msg("no tensor %s", name);
    return &set->tensors[i];
}

void tensor_set_drop(struct tensor_set *set, const char *name)
{
    struct safetensor *tensor = tensor_set_find(set, name);
    *tensor = set->tensors[--set->count];
}

void tensor_set_write(const struct tensor_set *set, const char *path)
{
    assert_ok(safetensors_write(path, set->tensors, set->count, NULL, 0, &error));
}

void tensor_set_free(struct tensor_set *set)
{
    for (size_t i = 0; i < TENSOR_SET_MOST; i++)
        free(set->turned[i]);
    *set = (struct tensor_set){0};
}
