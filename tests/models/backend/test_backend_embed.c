/* From pixels and tokens to rows, and back. */
#include "tests/models/device.h"

#include "core/rng.h"

struct image_case {
    size_t batch, resolution, patch, width;
};

static const struct image_case image_cases[] = {
    {1, 1, 1, 1},
    {3, 12, 4, 63},
    {2, 63, 7, 7},
    {1, 224, 16, 65},
};

static size_t patches_of(const struct image_case *c)
{
    return c->resolution / c->patch * (c->resolution / c->patch);
}

/* Where value `column` of patch row `row` lies: sample, colour, y, x. */
struct pixel {
    size_t sample, colour, y, x;
};

static struct pixel pixel_of(const struct image_case *c, size_t row, size_t column)
{
    size_t p = c->patch, grid = c->resolution / p, patch = row % patches_of(c);
    return (struct pixel){row / patches_of(c), column / (p * p), patch / grid * p + column / p % p,
                          patch % grid * p + column % p};
}

DEVICE_TEST_OF(images_become_patches, image_cases)
{
    const struct image_case *c = parameters;
    size_t r = c->resolution, per_image = patches_of(c), columns = 3 * c->patch * c->patch,
           n = c->batch * per_image * columns, bytes_count = c->batch * r * r * 3;
    struct operand floats = draw(d, c->batch * 3 * r * r, 1.0f), same = blank(d, n), normal = blank(d, n);
    uint8_t *bytes = host_room(d, bytes_count);
    struct rng rng = rng_make(1, RNG_TEST, 0, 0);
    for (size_t i = 0; i < bytes_count; i++)
        bytes[i] = i < 2 ? (uint8_t)(255 * i) : (uint8_t)rng_uint32(&rng, i);
    const float mean[3] = {0.48f, 0.45f, 0.4f}, std[3] = {0.26f, 0.27f, 0.28f};
    for (size_t i = 0; i < n; i++) {
        struct pixel at = pixel_of(c, i / columns, i % columns);
        same.host[i] = floats.host[((at.sample * 3 + at.colour) * r + at.y) * r + at.x];
        double value = bytes[((at.sample * r + at.y) * r + at.x) * 3 + at.colour] / 255.0;
        normal.expected[i] = (value - (double)mean[at.colour]) / (double)std[at.colour];
    }
    const struct tensor images[] = {
        {.data = floats.device, .type = TENSOR_F32, .rank = 4, .shape = {c->batch, 3, r, r}},
        {.data = to_device(d, bytes, bytes_count), .type = TENSOR_U8, .rank = 4, .shape = {c->batch, r, r, 3}}};
    for (int i = 0; i < 2; i++)
        must_run(d, patchify, .images = &images[i], .patch = c->patch, .per_image = per_image,
                 .out = i == 0 ? same.device : normal.device, .mean = {mean[0], mean[1], mean[2]},
                 .std = {std[0], std[1], std[2]});
    expect_host_bits(d, "patches of floats", same);
    expect_operand(d, "patches of pixels", normal, 1e-6);
}

DEVICE_TEST_OF(patches_become_tokens_and_back, image_cases)
{
    const struct image_case *c = parameters;
    size_t w = c->width, per_image = patches_of(c), length = per_image + 1;
    struct operand embedded = draw(d, c->batch * per_image * w, 1.0f), first = draw(d, w, 1.0f),
                   position = draw(d, length * w, 1.0f), x = blank(d, c->batch * length * w), dx = draw(d, x.n, 1.0f),
                   dpatches = blank(d, embedded.n), dclass = draw(d, w, 1.0f), dposition = draw(d, position.n, 1.0f);
    for (size_t i = 0; i < x.n; i++) {
        size_t b = i / w / length, l = i / w % length, j = i % w, patch = b * per_image + l - 1;
        x.expected[i] =
            (double)(l == 0 ? first.host[j] : embedded.host[patch * w + j]) + (double)position.host[l * w + j];
        *(l == 0 ? &dclass.expected[j] : &dpatches.expected[patch * w + j]) += (double)dx.host[i];
        dposition.expected[l * w + j] += (double)dx.host[i];
    }
    must_run(d, assemble_tokens, .batch = c->batch, .per_image = per_image, .width = w, .patches = embedded.device,
             .class_embedding = first.device, .position = position.device, .x = x.device);
    must_run(d, assemble_tokens_backward, .batch = c->batch, .per_image = per_image, .width = w, .dx = dx.device,
             .dpatches = dpatches.device, .dclass = dclass.device, .dposition = dposition.device);
    expect_operand(d, "tokens", x, 1e-6);
    expect_operand(d, "gradient of the patches", dpatches, 1e-6);
    expect_operand(d, "gradient of the class embedding", dclass, 1e-6);
    expect_operand(d, "gradient of the positions", dposition, 1e-6);
}

struct text_case {
    size_t batch, positions, context, width, vocabulary;
};

static const struct text_case text_cases[] = {
    {1, 1, 1, 1, 1},
    {7, 5, 9, 65, 3}, /* many repeats of each token */
    {3, 63, 77, 577, 50},
};

DEVICE_TEST_OF(tokens_are_embedded_and_back, text_cases)
{
    const struct text_case *c = parameters;
    size_t w = c->width;
    struct operand table = draw(d, c->vocabulary * w, 1.0f), position = draw(d, c->context * w, 1.0f),
                   x = blank(d, c->batch * c->positions * w), dx = draw(d, x.n, 1.0f), dtable = draw(d, table.n, 1.0f),
                   dposition = draw(d, position.n, 1.0f);
    int32_t tokens[256];
    struct rng rng = rng_make(2, RNG_TEST, 0, 0);
    for (size_t i = 0; i < c->batch * c->context; i++) /* beyond the positions: what must not be read */
        tokens[i] = i % c->context < c->positions ? (int32_t)rng_below(&rng, i, (uint32_t)c->vocabulary) : INT32_MAX;
    for (size_t i = 0; i < x.n; i++) {
        size_t row = i / w, l = row % c->positions, j = i % w,
               token = (size_t)tokens[row / c->positions * c->context + l];
        x.expected[i] = (double)table.host[token * w + j] + (double)position.host[l * w + j];
        dtable.expected[token * w + j] += (double)dx.host[i];
        dposition.expected[l * w + j] += (double)dx.host[i];
    }
    const int32_t *device_tokens = to_device(d, tokens, c->batch * c->context * sizeof *tokens);
    must_run(d, embed_tokens, .batch = c->batch, .positions = c->positions, .context = c->context, .width = w,
             .tokens = device_tokens, .table = table.device, .position = position.device, .x = x.device);
    must_run(d, embed_tokens_backward, .batch = c->batch, .positions = c->positions, .context = c->context, .width = w,
             .tokens = device_tokens, .dx = dx.device, .dtable = dtable.device, .dposition = dposition.device);
    expect_operand(d, "embedded tokens", x, 1e-6);
    expect_operand(d, "gradient of the table", dtable, 1e-6);
    expect_operand(d, "gradient of the positions", dposition, 1e-6);
}
