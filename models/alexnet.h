/* AlexNet (Krizhevsky 2014, "One weird trick", as torchvision has it) up to the output of its fifth convolution, before the
 * ReLU. Inference only, composed of gathered rows and products.
 *
 *     struct alexnet *net;
 *     TRY(alexnet_load(&net, backend, &arena, "alexnet.safetensors", error));
 *     TRY(alexnet_features(net, &step_arena, &images, &features, error));
 *     alexnet_destroy(net);
 */
#pragma once

#include "models/backend.h"

enum { ALEXNET_RESOLUTION = 224, ALEXNET_WIDTH = 256 * 13 * 13 };

struct alexnet;

/* Reads features.0, .3, .6, .8 and .10, each with .weight [out, in, k, k] and .bias [out], in f32; the classifier's tensors
 * are ignored. Memory of the net comes from the arena. */
status alexnet_load(struct alexnet **net, struct backend *backend, struct arena *arena, const char *path,
                    struct error *error);
void alexnet_destroy(struct alexnet *net); /* NULL is allowed */
SCOPED_POINTER(struct alexnet, alexnet_destroy)

/* features [B, 256 · 13 · 13] (channel, row, column), of images u8 [B, 224, 224, 3] normalised with CLIP's mean and
 * deviation. Taken from the arena. */
status alexnet_features(const struct alexnet *net, struct arena *arena, const struct tensor *images,
                        struct tensor *features, struct error *error);
