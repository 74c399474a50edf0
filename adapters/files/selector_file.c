#include "adapters/files/selector_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODER_TENSORS = 4 };

static const char thresholds_name[] = "selector.thresholds";

struct selector_tensor_name {
    char text[64];
};

/* In the order of an autoencoder's parameters. */
static struct selector_tensor_name name_of(size_t coder, size_t parameter)
{
    static const char *const parts[CODER_TENSORS] = {"encoder.weight", "encoder.bias", "decoder.weight",
                                                     "decoder.bias"};
    struct selector_tensor_name name;
    snprintf(name.text, sizeof name.text, "selector.%zu.%s", coder, parts[parameter]);
    return name;
}

/* --- Writing --- */

static status download(struct selector_tensors *tensors, struct autoencoder *const *coders, size_t trained,
                       struct error *error)
{
    float *values = tensors->values + trained;
    for (size_t i = 0; i < trained * CODER_TENSORS; i++) {
        const struct parameters *group = coders[i / CODER_TENSORS]->parameters;
        const struct parameter *p = &group->list[i % CODER_TENSORS];
        TRY(parameters_download(group, p, values, error));
        tensors->names[i] = name_of(i / CODER_TENSORS, i % CODER_TENSORS);
        tensors->list[i] = (struct safetensor){
            .name = tensors->names[i].text, .type = SAFETENSOR_F32, .rank = p->rank, .data = values};
        memcpy(tensors->list[i].shape, p->shape, sizeof p->shape);
        values += p->size;
    }
    return OK;
}

status selector_tensors_create(struct selector_tensors *tensors, struct autoencoder *const *coders,
                               const float *thresholds, size_t trained, struct error *error)
{
    size_t each = trained > 0 ? parameters_size(coders[0]->parameters) : 0, count = trained * CODER_TENSORS + 1;
    *tensors = (struct selector_tensors){.count = count,
                                         .list = calloc(count, sizeof *tensors->list),
                                         .names = calloc(count, sizeof *tensors->names),
                                         .values = malloc(array_size(trained + trained * each + 1, sizeof(float)))};
    status result = OK;
    if (tensors->list == NULL || tensors->names == NULL || tensors->values == NULL)
        result = error_set(error, ERROR_MEMORY, "selector: no memory to save %zu autoencoders", trained);
    if (result == OK) {
        memcpy(tensors->values, thresholds, trained * sizeof *thresholds);
        tensors->list[count - 1] = (struct safetensor){
            .name = thresholds_name, .type = SAFETENSOR_F32, .rank = 1, .shape = {trained}, .data = tensors->values};
        result = download(tensors, coders, trained, error);
    }
    if (result != OK)
        selector_tensors_free(tensors);
    return result;
}

void selector_tensors_free(struct selector_tensors *tensors)
{
    free(tensors->list);
    free(tensors->names);
    free(tensors->values);
    *tensors = (struct selector_tensors){0};
}

/* --- Reading --- */

static status find_thresholds(const struct safetensors *file, const struct safetensor **found, struct error *error)
{
    const struct safetensor *tensor = safetensors_find(file, thresholds_name);
    size_t coders = tensor != NULL && tensor->rank == 1 ? tensor->shape[0] : 0;
    TRY(safetensors_expect(file, thresholds_name, SAFETENSOR_F32, 1, &coders, found, error));
    const float *values = (*found)->data;
    for (size_t k = 0; k < coders; k++)
        if (isnan(values[k]))
            return error_set(error, ERROR_FORMAT, "%s: tensor %s: expected numbers, found NaN at %zu",
                             safetensors_path(file), thresholds_name, k);
    return OK;
}

static status check_finite(const struct safetensors *file, const struct safetensor *tensor, struct error *error)
{
    const float *values = tensor->data;
    for (size_t i = 0; i < safetensor_elements(tensor); i++)
        if (!isfinite(values[i]))
            return error_set(error, ERROR_FORMAT, "%s: tensor %s: expected finite numbers, found %f at %zu",
                             safetensors_path(file), tensor->name, (double)values[i], i);
    return OK;
}

status selector_file_check(const struct safetensors *file, size_t width, size_t code, size_t *trained,
                           struct error *error)
{
    const size_t shapes[CODER_TENSORS][2] = {{code, width}, {code}, {width, code}, {width}};
    const struct safetensor *found;
    TRY(find_thresholds(file, &found, error));
    *trained = found->shape[0];
    for (size_t i = 0; i < *trained * CODER_TENSORS; i++) {
        size_t which = i % CODER_TENSORS;
        struct selector_tensor_name name = name_of(i / CODER_TENSORS, which);
        TRY(safetensors_expect(file, name.text, SAFETENSOR_F32, which % 2 == 0 ? 2 : 1, shapes[which], &found, error));
        TRY(check_finite(file, found, error));
    }
    return OK;
}

status selector_file_read(const struct safetensors *file, struct autoencoder *const *coders, float *thresholds,
                          size_t trained, struct error *error)
{
    const struct safetensor *found = safetensors_find(file, thresholds_name);
    memcpy(thresholds, found->data, trained * sizeof *thresholds);
    for (size_t i = 0; i < trained * CODER_TENSORS; i++) {
        struct parameters *group = coders[i / CODER_TENSORS]->parameters;
        found = safetensors_find(file, name_of(i / CODER_TENSORS, i % CODER_TENSORS).text);
        TRY(parameters_upload(group, &group->list[i % CODER_TENSORS], found->data, error));
    }
    return OK;
}
