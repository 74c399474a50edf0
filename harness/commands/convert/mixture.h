/* Makes a vision transformer with experts in place of MLPs from a dense one, writes it to a file, and compares the two.
 *
 *     struct mixture mixture;
 *     status result = mixture_open(&mixture, &settings, error);
 *     NEXT(result, mixture_write(&mixture, "out.safetensors", error));
 *     NEXT(result, mixture_compare(&mixture, pixels, count, &deviation, error));
 *     mixture_close(&mixture);                                               // also after a failure
 */
#pragma once

#include "adapters/adapter.h"
#include "models/vit.h"

struct mixture_settings {
    const char *weights; /* file of a CLIP, or of a ViT with timm's or Hugging Face's names; mini */
    struct clip_stated stated;
    struct adapter_settings adapter; /* its activation is replaced by the model's */
    uint64_t seed;
    struct backend_settings backend;
};

struct mixture {
    struct backend *backend;
    struct arena memory, step;
    struct clip *vit, *written; /* the dense model; the tower of the file */
    struct linear_head *head;   /* NULL: the file has none */
    struct adapters *adapters;
};

status mixture_open(struct mixture *mixture, const struct mixture_settings *settings, struct error *error);
void mixture_close(struct mixture *mixture);

/* Writes the file and reads tower and experts back from it. Called once. */
status mixture_write(struct mixture *mixture, const char *path, struct error *error);

/* The largest magnitude of a feature of the dense model, and the largest difference between features of both models,
 * over all images so far; zeros at first. */
struct deviation {
    double largest, difference;
};

/* pixels [count, R, R, 3]. ERROR_FORMAT where a feature is not finite. */
status mixture_compare(struct mixture *mixture, const uint8_t *pixels, size_t count, struct deviation *deviation,
                       struct error *error);
