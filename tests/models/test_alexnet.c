/* AlexNet against plain loops over random weights. The loops and the program's features agree with PyTorch's (torchvision's
 * layers, the same weights in f64) to 2e-7 of features of size 0.2. */
#include "models/alexnet.h"

#include <math.h>
#include <stdlib.h>

#include "core/rng.h"
#include "tests/models/alexnet_file.h"
#include "tests/models/device.h"
#include "tests/models/files/tensor_set.h"

enum { BYTES = ALEXNET_RESOLUTION * ALEXNET_RESOLUTION * 3 };

/* x [in, from, from] → [out, to, to] */
static double *convolved(struct device *d, const double *x, size_t from, size_t in, const struct safetensor *weight,
                         const float *bias, size_t stride, size_t padding, size_t to)
{
    size_t out = weight->shape[0], k = weight->shape[2];
    const float *w = weight->data;
    double *y = doubles(d, NULL, out * to * to);
    for (size_t o = 0; o < out; o++)
        for (size_t c = 0; c < in; c++)
            for (size_t ky = 0; ky < k; ky++)
                for (size_t kx = 0; kx < k; kx++)
                    for (size_t i = 0; i < to; i++)
                        for (size_t j = 0; j < to; j++) {
                            size_t row = i * stride + ky - padding, column = j * stride + kx - padding;
                            if (row < from && column < from) /* above 0, too: they wrap */
                                y[(o * to + i) * to + j] +=
                                    (double)w[((o * in + c) * k + ky) * k + kx] * x[(c * from + row) * from + column];
                        }
    for (size_t i = 0; i < out * to * to; i++)
        y[i] += (double)bias[i / (to * to)];
    return y;
}

static double *pooled(struct device *d, const double *x, size_t channels, size_t from, size_t to)
{
    double *y = doubles(d, NULL, channels * to * to);
    for (size_t i = 0; i < channels * to * to; i++) {
        double most = -INFINITY;
        for (size_t k = 0; k < 9; k++) {
            size_t row = i / to % to * 2 + k / 3, column = i % to * 2 + k % 3;
            most = fmax(most, x[(i / (to * to) * from + row) * from + column]);
        }
        y[i] = most;
    }
    return y;
}

static double *reference(struct device *d, const struct alexnet_file *file, const uint8_t *pixels)
{
    static const size_t strides[] = {4, 1, 1, 1, 1}, paddings[] = {2, 2, 1, 1, 1}, sizes[] = {55, 27, 13, 13, 13};
    static const double mean[] = {0.48145466, 0.4578275, 0.40821073},
                        deviation[] = {0.26862954, 0.26130258, 0.27577711};
    size_t size = ALEXNET_RESOLUTION, channels = 3;
    double *x = doubles(d, NULL, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        x[i % 3 * size * size + i / 3] = (pixels[i] / 255.0 - mean[i % 3]) / deviation[i % 3];
    for (size_t l = 0; l < 5; l++) {
        const struct safetensor *weight = &file->tensors[2 * l];
        x = convolved(d, x, size, channels, weight, file->tensors[2 * l + 1].data, strides[l], paddings[l], sizes[l]);
        size = sizes[l];
        channels = weight->shape[0];
        for (size_t i = 0; l < 4 && i < channels * size * size; i++)
            x[i] = fmax(x[i], 0);
        if (l > 1)
            continue;
        x = pooled(d, x, channels, size, (size - 1) / 2);
        size = (size - 1) / 2;
    }
    return x;
}

/* features [n, ALEXNET_WIDTH] on the device */
static float *features_of(struct device *d, const struct alexnet *net, const uint8_t *pixels, size_t n)
{
    struct tensor features, images = {.data = to_device(d, pixels, n * BYTES),
                                      .type = TENSOR_U8,
                                      .rank = 4,
                                      .shape = {n, ALEXNET_RESOLUTION, ALEXNET_RESOLUTION, 3}};
    must(alexnet_features(net, &d->memory, &images, &features, &error));
    assert_int_equal(features.shape[0], n);
    assert_int_equal(features.shape[1], ALEXNET_WIDTH);
    return features.data;
}

/* Those of plain loops; and, of more images than are computed at a time, for each those that it has alone. */
TEST(features_are_those_of_plain_loops)
{
    enum { IMAGES = 9 };
    struct device d;
    struct alexnet *net;
    struct alexnet_file file = alexnet_file_draw();
    struct rng rng = rng_make(4, RNG_TEST, 78, 0);
    must(alexnet_file_write(&file, test_path(), ALEXNET_FILE_TENSORS, &error));
    device_open(&d, 2);
    uint8_t *pixels = host_room(&d, IMAGES * BYTES);
    for (size_t i = 0; i < IMAGES * BYTES; i++)
        pixels[i] = (uint8_t)(255 * rng_uniform(&rng, i));
    must(alexnet_load(&net, d.backend, &d.memory, test_path(), &error));
    expect_close(&d, "features", features_of(&d, net, pixels, 1), reference(&d, &file, pixels), ALEXNET_WIDTH, 2e-5);
    const float *all = features_of(&d, net, pixels, IMAGES);
    for (size_t i = 1; i < IMAGES; i += 7) {
        const float *alone =
            from_device(&d, features_of(&d, net, pixels + i * BYTES, 1), ALEXNET_WIDTH * sizeof(float));
        expect_close(&d, "features", all + i * ALEXNET_WIDTH, doubles(&d, alone, ALEXNET_WIDTH), ALEXNET_WIDTH, 1e-6);
    }
    alexnet_destroy(net);
    device_close(&d);
    free(file.values);
}

TEST(other_files_are_refused)
{
    static const struct {
        size_t tensors, width; /* width: of the second layer */
        float first;
        const char *word;
    } cases[] = {{ALEXNET_FILE_TENSORS - 2, 192, 0, "features.10.weight"},
                 {ALEXNET_FILE_TENSORS, 192, NAN, "features.0.weight"},
                 {ALEXNET_FILE_TENSORS, 191, 0, "features.3.weight"}};
    struct device d;
    struct alexnet *net;
    struct alexnet_file file = alexnet_file_draw();
    device_open(&d, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file.tensors[2].shape[0] = cases[i].width;
        file.values[0] = cases[i].first;
        must(alexnet_file_write(&file, test_path(), cases[i].tensors, &error));
        must_refuse(alexnet_load(&net, d.backend, &d.memory, test_path(), &error), ERROR_FORMAT, cases[i].word,
                    test_path());
    }
    device_close(&d);
    free(file.values);
}
