/* A file of random AlexNet weights under torchvision's names. */
#pragma once

#include "models/files/safetensors.h"

enum { ALEXNET_FILE_TENSORS = 10 };

/* The weights, layer after layer: weight, bias. The caller frees `values`. */
struct alexnet_file {
    float *values;
    struct safetensor tensors[ALEXNET_FILE_TENSORS];
};
struct alexnet_file alexnet_file_draw(void);

/* Writes the first `count` of them. */
status alexnet_file_write(const struct alexnet_file *file, const char *path, size_t count, struct error *error);
