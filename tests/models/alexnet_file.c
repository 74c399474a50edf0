#include "tests/models/alexnet_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

/* out, in, kernel */
static const size_t shapes[][3] = {{64, 3, 11}, {192, 64, 5}, {384, 192, 3}, {256, 384, 3}, {256, 256, 3}};

static const char *const names[ALEXNET_FILE_TENSORS] = {
    "features.0.weight", "features.0.bias",   "features.3.weight", "features.3.bias",    "features.6.weight",
    "features.6.bias",   "features.8.weight", "features.8.bias",   "features.10.weight", "features.10.bias"};

struct alexnet_file alexnet_file_draw(void)
{
    struct alexnet_file file = {.values = malloc((size_t)10 << 20)};
    float *next = file.values;
    for (size_t i = 0; file.values != NULL && i < ALEXNET_FILE_TENSORS; i++) {
        const size_t *s = shapes[i / 2];
        struct safetensor *tensor = &file.tensors[i];
        struct rng rng = rng_make(4, RNG_TEST, 77, (uint32_t)i);
        size_t fan_in = s[1] * s[2] * s[2], n = i % 2 == 0 ? s[0] * fan_in : s[0];
        *tensor =
            (struct safetensor){.name = names[i], .type = SAFETENSOR_F32, .rank = i % 2 == 0 ? 4 : 1, .data = next};
        memcpy(tensor->shape, ((size_t[]){s[0], s[1], s[2], s[2]}), 4 * sizeof(size_t));
        for (size_t k = 0; k < n; k++)
            *next++ = (i % 2 == 0 ? sqrtf(2.0f / (float)fan_in) : 0.1f) * rng_normal(&rng, k);
    }
    return file;
}

status alexnet_file_write(const struct alexnet_file *file, const char *path, size_t count, struct error *error)
{
    return safetensors_write(path, file->tensors, count, NULL, 0, error);
}
