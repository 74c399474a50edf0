/* The files of CIFAR-10 and CIFAR-100, in both versions: images of 32×32, all red, then green, then blue, and a
 * label each.
 *
 *     struct cifar cifar;
 *     TRY(cifar_read_pickle(&cifar, "cifar-100-python/train", "fine_labels", error));
 *     TRY(cifar_read_binary(&cifar, "cifar-100-binary/train.bin", 2, error));            // coarse, then fine label
 *     cifar.pixels + i * cifar.stride, cifar.labels[i]
 *     cifar_release(cifar.owner), free(cifar.labels)
 */
#pragma once

#include <stdint.h>

#include "datasets/formats/strings.h"

enum { CIFAR_SIDE = 32, CIFAR_PIXELS = 3 * CIFAR_SIDE * CIFAR_SIDE };

struct cifar {
    size_t count, stride;
    const uint8_t *pixels;
    int32_t *labels; /* the caller frees */
    void *owner;     /* keeps pixels alive until cifar_release */
};

/* labels: the key of the labels' list. */
status cifar_read_pickle(struct cifar *cifar, const char *path, const char *labels, struct error *error);

/* Records of label_bytes labels and the pixels. The last label is used. */
status cifar_read_binary(struct cifar *cifar, const char *path, int label_bytes, struct error *error);
void cifar_release(void *owner);

/* A list of strings from a pickled dictionary (meta: "fine_label_names"), appended. */
status cifar_read_names(struct strings *names, const char *path, const char *key, struct error *error);
