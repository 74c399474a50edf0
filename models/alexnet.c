#include "models/alexnet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "models/files/clip_config.h"
#include "models/files/weights_file.h"

enum { CONVOLUTIONS = 5, POOLS = 2, WINDOW = 9, TOGETHER = 8 /* images at a time: their columns need memory */ };

/* A layer over square images; in and out are channels, from and to are sizes. */
struct layer {
    const char *name;
    size_t in, out, kernel, stride, padding, from, to;
    enum activation activation;
    bool pooled; /* followed by max pooling, 3 × 3 with stride 2 */
};

static const struct layer layers[CONVOLUTIONS] = {
    {"features.0", 3, 64, 11, 4, 2, 224, 55, ACTIVATION_RELU, true},
    {"features.3", 64, 192, 5, 1, 2, 27, 27, ACTIVATION_RELU, true},
    {"features.6", 192, 384, 3, 1, 1, 13, 13, ACTIVATION_RELU, false},
    {"features.8", 384, 256, 3, 1, 1, 13, 13, ACTIVATION_RELU, false},
    {"features.10", 256, 256, 3, 1, 1, 13, 13, ACTIVATION_NONE, false},
};

/* A layer on the device. Activations are rows of channels, a row per pixel; one row of zeros after the rows of TOGETHER
 * images stands for the padding. */
struct convolution {
    float *weight, *bias;    /* [out, kernel, kernel, in], [out] */
    int32_t *columns;        /* [TOGETHER, to, to, kernel, kernel] row of the input */
    int32_t *window[WINDOW]; /* [TOGETHER, pooled, pooled] row of the output; NULL: not pooled */
};

struct alexnet {
    struct backend *backend;
    struct convolution convolutions[CONVOLUTIONS];
    int32_t *channels_first; /* [TOGETHER, 256, 13, 13] value of the last output */
};

static size_t pooled_size(size_t size)
{
    return (size - 3) / 2 + 1;
}

/* --- Loading --- */

static status upload(struct alexnet *net, struct arena *arena, const void *values, size_t bytes, void *device,
                     struct error *error)
{
    void *memory = arena_take(arena, bytes);
    if (memory == NULL)
        return error_set(error, ERROR_MEMORY, "memory: AlexNet needs %zu MiB more", bytes >> 20);
    memcpy(device, &memory, sizeof memory);
    return net->backend->ops->upload(net->backend, memory, values, bytes, error);
}

/* Lists the pixels that each output reads. */
static status place_columns(struct alexnet *net, struct arena *arena, size_t index, struct error *error)
{
    const struct layer *l = &layers[index];
    size_t count = TOGETHER * l->to * l->to * l->kernel * l->kernel, at = 0;
    OWNED int32_t *rows = xmalloc(array_size(count, sizeof *rows));
    for (size_t output = 0; output < TOGETHER * l->to * l->to; output++)
        for (size_t k = 0; k < l->kernel * l->kernel; k++) {
            size_t image = output / (l->to * l->to), place = output % (l->to * l->to),
                   y = place / l->to * l->stride + k / l->kernel, x = place % l->to * l->stride + k % l->kernel;
            bool inside = y >= l->padding && x >= l->padding && y - l->padding < l->from && x - l->padding < l->from;
            rows[at++] = (int32_t)(inside ? (image * l->from + y - l->padding) * l->from + x - l->padding
                                          : TOGETHER * l->from * l->from);
        }
    return upload(net, arena, rows, count * sizeof *rows, &net->convolutions[index].columns, error);
}

/* Lists the outputs that each maximum reads. */
static status place_window(struct alexnet *net, struct arena *arena, size_t index, size_t offset, struct error *error)
{
    size_t from = layers[index].to, to = pooled_size(from), count = TOGETHER * to * to;
    OWNED int32_t *rows = xmalloc(array_size(count, sizeof *rows));
    for (size_t i = 0; i < count; i++) {
        size_t image = i / (to * to), y = i / to % to * 2 + offset / 3, x = i % to * 2 + offset % 3;
        rows[i] = (int32_t)((image * from + y) * from + x);
    }
    return upload(net, arena, rows, count * sizeof *rows, &net->convolutions[index].window[offset], error);
}

static status place_channels(struct alexnet *net, struct arena *arena, struct error *error)
{
    const struct layer *last = &layers[CONVOLUTIONS - 1];
    size_t pixels = last->to * last->to, count = TOGETHER * (size_t)ALEXNET_WIDTH;
    OWNED int32_t *rows = xmalloc(array_size(count, sizeof *rows));
    for (size_t i = 0; i < count; i++) {
        size_t image = i / ALEXNET_WIDTH, channel = i / pixels % last->out, pixel = i % pixels;
        rows[i] = (int32_t)((image * pixels + pixel) * last->out + channel);
    }
    return upload(net, arena, rows, count * sizeof *rows, &net->channels_first, error);
}

static status find(const struct safetensors *file, const char *layer, const char *part, int rank, const size_t *shape,
                   const float **values, struct error *error)
{
    char name[32];
    const struct safetensor *found;
    snprintf(name, sizeof name, "%s.%s", layer, part);
    TRY(safetensors_expect(file, name, SAFETENSOR_F32, rank, shape, &found, error));
    *values = found->data;
    return safetensors_expect_finite(file, name, *values, safetensor_elements(found), error);
}

/* Loads the weights with the channels last, like the columns. */
static status load_layer(struct alexnet *net, struct arena *arena, const struct safetensors *file, size_t index,
                         struct error *error)
{
    const struct layer *l = &layers[index];
    size_t window = l->kernel * l->kernel, n = l->out * window * l->in;
    const float *weight, *bias;
    TRY(find(file, l->name, "weight", 4, (size_t[]){l->out, l->in, l->kernel, l->kernel}, &weight, error));
    TRY(find(file, l->name, "bias", 1, &l->out, &bias, error));
    OWNED float *transposed = xmalloc(array_size(n, sizeof *transposed));
    for (size_t i = 0; i < n; i++) {
        size_t out = i / (window * l->in), k = i / l->in % window, in = i % l->in;
        transposed[i] = weight[(out * l->in + in) * window + k];
    }
    struct convolution *c = &net->convolutions[index];
    TRY(upload(net, arena, transposed, n * sizeof *transposed, &c->weight, error));
    return upload(net, arena, bias, l->out * sizeof *bias, &c->bias, error);
}

static status load(struct alexnet *net, struct arena *arena, const struct safetensors *file, struct error *error)
{
    for (size_t i = 0; i < CONVOLUTIONS; i++) {
        TRY(load_layer(net, arena, file, i, error));
        TRY(place_columns(net, arena, i, error));
        for (size_t offset = 0; layers[i].pooled && offset < WINDOW; offset++)
            TRY(place_window(net, arena, i, offset, error));
    }
    return place_channels(net, arena, error);
}

status alexnet_load(struct alexnet **result, struct backend *backend, struct arena *arena, const char *path,
                    struct error *error)
{
    SCOPED(safetensors_close_at) struct safetensors *file = NULL;
    SCOPED(alexnet_destroy_at) struct alexnet *net = xcalloc(1, sizeof *net);
    net->backend = backend;
    TRY(weights_file_open(&file, path, WEIGHTS_WHOLE, error));
    TRY(load(net, arena, file, error));
    *result = TAKE(net);
    return OK;
}

void alexnet_destroy(struct alexnet *net)
{
    free(net);
}

/* --- Computing --- */

/* Takes memory for the rows of pixels of TOGETHER images and the row of zeros after them. */
static status take_pixels(const struct alexnet *net, struct arena *arena, size_t size, size_t channels,
                          struct tensor *x, struct error *error)
{
    size_t rows = TOGETHER * size * size;
    TRY(tensor_take(x, arena, TENSOR_F32, "AlexNet", 2, (size_t[]){rows + 1, channels}, error));
    return net->backend->ops->zero(net->backend, (float *)x->data + rows * channels, channels * sizeof(float), error);
}

static status gather(const struct alexnet *net, struct matrix x, const int32_t *rows, struct matrix out,
                     struct error *error)
{
    return net->backend->ops->gather_rows(net->backend, &(struct gather_rows){.x = x, .out = out, .rows = rows}, error);
}

static status sum(const struct alexnet *net, const float *a, float factor, const float *b, size_t n, float *out,
                  struct error *error)
{
    struct weighted_sum o = {.count = 2, .n = n, .inputs = {a, b}, .weights = {1, factor}, .out = out};
    return net->backend->ops->weighted_sum(net->backend, &o, error);
}

/* max(a, b) = a + ReLU(b − a), offset after offset. */
static status pool(const struct alexnet *net, struct arena *arena, size_t index, size_t images, const struct tensor *x,
                   struct tensor *pooled, struct error *error)
{
    size_t channels = layers[index].out, to = pooled_size(layers[index].to), rows = images * to * to,
           n = rows * channels;
    struct tensor other;
    TRY(take_pixels(net, arena, to, channels, pooled, error));
    TRY(tensor_take(&other, arena, TENSOR_F32, "AlexNet", 2, (size_t[]){rows, channels}, error));
    struct matrix out = matrix_rows(pooled->data, rows, channels), found = matrix_of(&other);
    int32_t *const *window = net->convolutions[index].window;
    TRY(gather(net, matrix_of(x), window[0], out, error));
    for (size_t offset = 1; offset < WINDOW; offset++) {
        TRY(gather(net, matrix_of(x), window[offset], found, error));
        TRY(sum(net, other.data, -1, pooled->data, n, other.data, error));
        TRY(net->backend->ops->activate(
            net->backend, &(struct activate){.activation = ACTIVATION_RELU, .x = found, .out = found}, error));
        TRY(sum(net, pooled->data, 1, other.data, n, pooled->data, error));
    }
    return OK;
}

static status convolve(const struct alexnet *net, struct arena *arena, size_t index, size_t images,
                       const struct tensor *x, struct tensor *y, struct error *error)
{
    const struct layer *l = &layers[index];
    const struct convolution *c = &net->convolutions[index];
    size_t window = l->kernel * l->kernel, rows = images * l->to * l->to;
    struct tensor columns;
    TRY(take_pixels(net, arena, l->to, l->out, y, error));
    struct arena_mark mark = arena_mark(arena);
    TRY(tensor_take(&columns, arena, TENSOR_F32, "AlexNet's columns", 2, (size_t[]){rows, window * l->in}, error));
    TRY(gather(net, matrix_of(x), c->columns, matrix_rows(columns.data, rows * window, l->in), error));
    TRY(net->backend->ops->gemm(net->backend,
                                &(struct gemm){.a = matrix_of(&columns),
                                               .b = matrix_rows(c->weight, l->out, window * l->in),
                                               .transpose_b = true,
                                               .out = matrix_rows(y->data, rows, l->out),
                                               .exact = true,
                                               .bias = c->bias,
                                               .activation = l->activation},
                                error));
    arena_release(arena, mark);
    return OK;
}

static status read_pixels(const struct alexnet *net, struct arena *arena, const struct tensor *images, struct tensor *x,
                          struct error *error)
{
    enum { PIXELS = ALEXNET_RESOLUTION * ALEXNET_RESOLUTION };
    TRY(take_pixels(net, arena, ALEXNET_RESOLUTION, 3, x, error));
    struct patchify patchify = {.images = images, .patch = 1, .per_image = PIXELS, .out = x->data};
    memcpy(patchify.mean, pixel_norms[PIXELS_CLIP].mean, sizeof patchify.mean);
    memcpy(patchify.std, pixel_norms[PIXELS_CLIP].deviation, sizeof patchify.std);
    return net->backend->ops->patchify(net->backend, &patchify, error);
}

/* features [images, ALEXNET_WIDTH] of at most TOGETHER images */
static status compute(const struct alexnet *net, struct arena *arena, const struct tensor *images, float *features,
                      struct error *error)
{
    struct tensor x, y;
    size_t n = images->shape[0];
    TRY(read_pixels(net, arena, images, &x, error));
    for (size_t i = 0; i < CONVOLUTIONS; i++) {
        TRY(convolve(net, arena, i, n, &x, &y, error));
        x = y;
        if (layers[i].pooled)
            TRY(pool(net, arena, i, n, &y, &x, error));
    }
    return gather(net, matrix_rows(x.data, n * ALEXNET_WIDTH, 1), net->channels_first,
                  matrix_rows(features, n * ALEXNET_WIDTH, 1), error);
}

status alexnet_features(const struct alexnet *net, struct arena *arena, const struct tensor *images,
                        struct tensor *features, struct error *error)
{
    size_t n = images->shape[0];
    TRY(tensor_take(features, arena, TENSOR_F32, "AlexNet's features", 2, (size_t[]){n, ALEXNET_WIDTH}, error));
    struct arena_mark mark = arena_mark(arena);
    for (size_t first = 0; first < n; first += TOGETHER) {
        struct tensor some = *images;
        some.shape[0] = n - first < TOGETHER ? n - first : TOGETHER;
        some.data = (uint8_t *)images->data + first * ALEXNET_RESOLUTION * ALEXNET_RESOLUTION * 3;
        TRY(compute(net, arena, &some, (float *)features->data + first * ALEXNET_WIDTH, error));
        arena_release(arena, mark);
    }
    return OK;
}
