#include "adapters/files/selector_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* --- Writing --- */

static const char thresholds_name[] = "selector.thresholds";

struct selector_tensor_name {
    char text[64];
};

/* In the order of an autoencoder's parameters. */
static struct selector_tensor_name name_of(size_t coder, size_t parameter)
{
    static const char *const parts[AUTOENCODER_TENSORS] = {"encoder.weight", "encoder.bias", "decoder.weight",
                                                           "decoder.bias"};
    struct selector_tensor_name name;
    snprintf(name.text, sizeof name.text, "selector.%zu.%s", coder, parts[parameter]);
    return name;
}

float *selector_tensors_add(struct selector_tensors *tensors, const char *name, int rank, const size_t *shape)
{
    struct safetensor tensor = {.type = SAFETENSOR_F32, .rank = rank};
    memcpy(tensor.shape, shape, (size_t)rank * sizeof *shape);
    GROW(tensors->list, tensors->count);
    float *values = xmalloc(array_size(safetensor_elements(&tensor) + 1, sizeof *values));
    tensor.data = values;
    tensor.name = xstrdup(name);
    tensors->list[tensors->count++] = tensor;
    return values;
}

status selector_tensors_add_coders(struct selector_tensors *tensors, struct autoencoder *const *coders, size_t count,
                                   struct error *error)
{
    for (size_t i = 0; i < count * AUTOENCODER_TENSORS; i++) {
        struct parameters *group = coders[i / AUTOENCODER_TENSORS]->parameters;
        const struct parameter *p = &group->list[i % AUTOENCODER_TENSORS];
        struct selector_tensor_name name = name_of(i / AUTOENCODER_TENSORS, i % AUTOENCODER_TENSORS);
        TRY(parameters_download(group, p, selector_tensors_add(tensors, name.text, p->rank, p->shape), error));
    }
    return OK;
}

void selector_tensors_add_thresholds(struct selector_tensors *tensors, const float *thresholds, size_t count)
{
    memcpy(selector_tensors_add(tensors, thresholds_name, 1, &count), thresholds, count * sizeof *thresholds);
}

void selector_tensors_free(struct selector_tensors *tensors)
{
    for (size_t i = 0; i < tensors->count; i++) {
        free((char *)(uintptr_t)tensors->list[i].name);
        free((void *)(uintptr_t)tensors->list[i].data);
    }
    free(tensors->list);
    *tensors = (struct selector_tensors){0};
}

/* --- Reading --- */

status selector_file_array(const struct safetensors *file, const char *name, int rank, const size_t *shape,
                           const float **values, struct error *error)
{
    const struct safetensor *found;
    TRY(safetensors_expect(file, name, SAFETENSOR_F32, rank, shape, &found, error));
    TRY(safetensors_expect_finite(file, name, found->data, safetensor_elements(found), error));
    *values = found->data;
    return OK;
}

status selector_array(const struct selector_arrays *arrays, const char *name, int rank, const size_t *shape,
                      float *values, struct error *error)
{
    size_t bytes = shape[0] * (rank > 1 ? shape[1] : 1) * sizeof *values;
    const float *found;
    if (arrays->file == NULL) {
        memcpy(selector_tensors_add(arrays->tensors, name, rank, shape), values, bytes);
        return OK;
    }
    TRY(selector_file_array(arrays->file, name, rank, shape, &found, error));
    memcpy(values, found, bytes);
    return OK;
}

status selector_file_thresholds(const struct safetensors *file, const float **thresholds, size_t *trained,
                                struct error *error)
{
    const struct safetensor *found = safetensors_find(file, thresholds_name);
    *trained = found != NULL && found->rank == 1 ? found->shape[0] : 0;
    TRY(safetensors_expect(file, thresholds_name, SAFETENSOR_F32, 1, trained, &found, error));
    *thresholds = found->data;
    for (size_t k = 0; k < *trained; k++)
        if (isnan((*thresholds)[k]))
            return error_set(error, ERROR_FORMAT, "%s: tensor %s: expected numbers, found NaN at %zu",
                             safetensors_path(file), thresholds_name, k);
    return OK;
}

status selector_file_check(const struct safetensors *file, size_t width, size_t code, size_t more, size_t *trained,
                           struct error *error)
{
    const size_t shapes[AUTOENCODER_TENSORS][2] = {{code, width}, {code}, {width, code}, {width}};
    const float *values;
    TRY(selector_file_thresholds(file, &values, trained, error));
    for (size_t i = 0; i < (*trained + more) * AUTOENCODER_TENSORS; i++) {
        size_t which = i % AUTOENCODER_TENSORS;
        TRY(selector_file_array(file, name_of(i / AUTOENCODER_TENSORS, which).text, which % 2 == 0 ? 2 : 1,
                                shapes[which], &values, error));
    }
    return OK;
}

status selector_file_read(const struct safetensors *file, struct autoencoder *const *coders, size_t count,
                          struct error *error)
{
    for (size_t i = 0; i < count * AUTOENCODER_TENSORS; i++) {
        struct parameters *group = coders[i / AUTOENCODER_TENSORS]->parameters;
        const struct safetensor *found =
            safetensors_find(file, name_of(i / AUTOENCODER_TENSORS, i % AUTOENCODER_TENSORS).text);
        TRY(parameters_upload(group, &group->list[i % AUTOENCODER_TENSORS], found->data, error));
    }
    return OK;
}
