/* From pixels and tokens to rows, and back. A thread has a value. */
#include "models/cuda/kernel.cuh"

struct patch_place {
    size_t image, patch, channel, y, x;
};

/* The source of value `at` of the patch rows [B · per_image, 3 · p · p]. */
static __device__ inline struct patch_place place_of(size_t at, size_t p, size_t per_image)
{
    size_t values = 3 * p * p, row = at / values, within = at % values;
    return {row / per_image, row % per_image, within / (p * p), within / p % p, within % p};
}

struct colour {
    float mean[3], std[3];
};

static __global__ void patch_pixels(size_t n, const uint8_t *images, size_t r, size_t p, size_t per_image,
                                    struct colour colour, float *out)
{
    size_t at = global_thread();
    if (at >= n)
        return;
    struct patch_place q = place_of(at, p, per_image);
    size_t row = q.patch / (r / p) * p + q.y, column = q.patch % (r / p) * p + q.x;
    float value = (float)images[((q.image * r + row) * r + column) * 3 + q.channel];
    out[at] = (value / 255.0f - colour.mean[q.channel]) / colour.std[q.channel];
}

static __global__ void patch_floats(size_t n, const float *images, size_t r, size_t p, size_t per_image, float *out)
{
    size_t at = global_thread();
    if (at >= n)
        return;
    struct patch_place q = place_of(at, p, per_image);
    size_t row = q.patch / (r / p) * p + q.y, column = q.patch % (r / p) * p + q.x;
    out[at] = images[((q.image * 3 + q.channel) * r + row) * r + column];
}

status cuda_patchify(struct backend *backend, const struct patchify *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    size_t n = o->images->shape[0] * o->per_image * 3 * o->patch * o->patch;
    if (n == 0)
        return OK;
    if (o->images->type == TENSOR_U8) {
        struct colour colour = {{o->mean[0], o->mean[1], o->mean[2]}, {o->std[0], o->std[1], o->std[2]}};
        CUDA_LAUNCH(cuda, patch_pixels, blocks_for(n, BLOCK), BLOCK, 0, n, (const uint8_t *)o->images->data,
                    o->images->shape[1], o->patch, o->per_image, colour, (float *)o->out);
    } else {
        CUDA_LAUNCH(cuda, patch_floats, blocks_for(n, BLOCK), BLOCK, 0, n, (const float *)o->images->data,
                    o->images->shape[2], o->patch, o->per_image, (float *)o->out);
    }
    return cuda_finish(cuda, "patchify", error);
}

/* The position of token l of image b: 0 for the class token, else one past its patch. */
static __global__ void assemble(size_t batch, size_t per_image, size_t d, const float *patches,
                                const float *class_embedding, const float *position, float *x)
{
    size_t at = global_thread(), j = at % d, l = at / d % (per_image + 1), b = at / d / (per_image + 1);
    if (b >= batch)
        return;
    float token = l == 0 ? class_embedding[j] : patches[(b * per_image + l - 1) * d + j];
    x[at] = token + position[l * d + j];
}

status cuda_assemble_tokens(struct backend *backend, const struct assemble_tokens *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    size_t n = o->batch * (o->per_image + 1) * o->width;
    if (n > 0)
        CUDA_LAUNCH(cuda, assemble, blocks_for(n, BLOCK), BLOCK, 0, o->batch, o->per_image, o->width,
                    (const float *)o->patches, (const float *)o->class_embedding, (const float *)o->position,
                    (float *)o->x);
    return cuda_finish(cuda, "assemble_tokens", error);
}

/* A thread has a column and walks over every token, so that sums never change their order. */
static __global__ void assemble_backward(size_t batch, size_t per_image, size_t d, const float *dx, float *dpatches,
                                         float *dclass, float *dposition)
{
    size_t j = global_thread();
    if (j >= d)
        return;
    for (size_t b = 0; b < batch; b++)
        for (size_t l = 0; l <= per_image; l++) {
            float slope = dx[(b * (per_image + 1) + l) * d + j];
            if (l == 0)
                dclass[j] += slope;
            else
                dpatches[(b * per_image + l - 1) * d + j] = slope;
            dposition[l * d + j] += slope;
        }
}

status cuda_assemble_tokens_backward(struct backend *backend, const struct assemble_tokens_backward *o,
                                     struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->width > 0)
        CUDA_LAUNCH(cuda, assemble_backward, blocks_for(o->width, WARP), WARP, 0, o->batch, o->per_image, o->width,
                    (const float *)o->dx, (float *)o->dpatches, (float *)o->dclass, (float *)o->dposition);
    return cuda_finish(cuda, "assemble_tokens_backward", error);
}

static __global__ void embed(size_t batch, size_t positions, size_t context, size_t d, const int32_t *tokens,
                             const float *table, const float *position, float *x)
{
    size_t at = global_thread(), j = at % d, l = at / d % positions, b = at / d / positions;
    if (b < batch)
        x[at] = table[(size_t)tokens[b * context + l] * d + j] + position[l * d + j];
}

status cuda_embed_tokens(struct backend *backend, const struct embed_tokens *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    size_t n = o->batch * o->positions * o->width;
    if (n > 0)
        CUDA_LAUNCH(cuda, embed, blocks_for(n, BLOCK), BLOCK, 0, o->batch, o->positions, o->context, o->width,
                    o->tokens, (const float *)o->table, (const float *)o->position, (float *)o->x);
    return cuda_finish(cuda, "embed_tokens", error);
}

static __global__ void embed_backward(size_t batch, size_t positions, size_t context, size_t d, const int32_t *tokens,
                                      const float *dx, float *dtable, float *dposition)
{
    size_t j = global_thread();
    if (j >= d)
        return;
    for (size_t b = 0; b < batch; b++)
        for (size_t l = 0; l < positions; l++) {
            float slope = dx[(b * positions + l) * d + j];
            dtable[(size_t)tokens[b * context + l] * d + j] += slope;
            dposition[l * d + j] += slope;
        }
}

status cuda_embed_tokens_backward(struct backend *backend, const struct embed_tokens_backward *o, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    if (o->width > 0)
        CUDA_LAUNCH(cuda, embed_backward, blocks_for(o->width, WARP), WARP, 0, o->batch, o->positions, o->context,
                    o->width, o->tokens, (const float *)o->dx, (float *)o->dtable, (float *)o->dposition);
    return cuda_finish(cuda, "embed_tokens_backward", error);
}
