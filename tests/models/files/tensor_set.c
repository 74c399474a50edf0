#include "tests/models/files/tensor_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "tests/models/device.h"

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
    must(safetensors_write(path, set->tensors, set->count, NULL, 0, &error));
}

void tensor_set_free(struct tensor_set *set)
{
    for (size_t i = 0; i < TENSOR_SET_MOST; i++)
        free(set->turned[i]);
    *set = (struct tensor_set){0};
}

static void remove_test_file(void)
{
    unlink(test_path());
}

const char *test_path(void)
{
    static char path[80];
    if (path[0] == '\0') {
        snprintf(path, sizeof path, "%s-%ld.safetensors", program_invocation_short_name, (long)getpid());
        assert_int_equal(atexit(remove_test_file), 0);
    }
    return path;
}

struct safetensors *open_file(const char *path)
{
    struct safetensors *file;
    must(safetensors_open(&file, path, WEIGHTS_WHOLE, &error));
    return file;
}

void edit_file(const char *path, const struct file_edit *edit, const struct safetensors_metadata *metadata,
               size_t metadata_count)
{
    static struct tensor_set set;
    struct safetensors *file = open_file(path);
    size_t strip = edit->strip != NULL ? strlen(edit->strip) : 0;
    assert_true(safetensors_count(file) < TENSOR_SET_MOST);
    set.count = 0;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        struct safetensor tensor = *safetensors_at(file, i);
        if ((edit->without != NULL && strstr(tensor.name, edit->without) != NULL) ||
            (edit->drop != NULL && strcmp(tensor.name, edit->drop) == 0))
            continue;
        if (strip > 0 && strncmp(tensor.name, edit->strip, strip) == 0)
            tensor.name += strip;
        char *name = set.names[set.count];
        snprintf(name, sizeof *set.names, "%s%s", edit->prefix != NULL ? edit->prefix : "", tensor.name);
        set.tensors[set.count] = tensor;
        set.tensors[set.count++].name = name;
    }
    if (edit->more != NULL)
        set.tensors[set.count++] = *edit->more;
    must(safetensors_write(path, set.tensors, set.count, metadata, metadata_count, &error));
    safetensors_close(file);
}
