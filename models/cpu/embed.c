/* From pixels and tokens to rows, and back. */
#include <string.h>

#include "models/cpu/cpu.h"

static void patch_from_pixels(const struct vector_kernels *vector, const struct patchify *o, size_t b, size_t patch,
                              float *out)
{
    size_t p = o->patch, r = o->images->shape[1], grid = r / p;
    const uint8_t *image = (const uint8_t *)o->images->data + b * r * r * 3;
    for (size_t c = 0; c < 3; c++)
        for (size_t y = 0; y < p; y++) {
            const uint8_t *row = image + ((patch / grid * p + y) * r + patch % grid * p) * 3 + c;
            vector->pixels(p, row, 3, o->mean[c], o->std[c], out + (c * p + y) * p);
        }
}

static void patch_from_floats(const struct patchify *o, size_t b, size_t patch, float *out)
{
    size_t p = o->patch, r = o->images->shape[2], grid = r / p;
    const float *image = (const float *)o->images->data + b * 3 * r * r;
    for (size_t c = 0; c < 3; c++)
        for (size_t y = 0; y < p; y++)
            memcpy(out + (c * p + y) * p, image + (c * r + patch / grid * p + y) * r + patch % grid * p,
                   p * sizeof *out);
}

static void patchify_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct patchify *o = operation;
    for (size_t i = first; i < last; i++) {
        size_t b = i / o->per_image, patch = i % o->per_image;
        float *out = (float *)o->out + i * 3 * o->patch * o->patch;
        if (o->images->type == TENSOR_U8)
            patch_from_pixels(cpu->vector, o, b, patch, out);
        else
            patch_from_floats(o, b, patch, out);
    }
}

status cpu_patchify(struct backend *backend, const struct patchify *o, struct error *error)
{
    (void)error;
    return cpu_run_rows(cpu_of(backend), o->images->shape[0] * o->per_image, 3 * o->patch * o->patch, patchify_rows, o);
}

static void assemble_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct assemble_tokens *o = operation;
    size_t d = o->width, length = o->per_image + 1;
    for (size_t i = first; i < last; i++) {
        size_t b = i / length, l = i % length, patch = b * o->per_image + (l > 0 ? l - 1 : 0);
        const float *token = l == 0 ? o->class_embedding : (const float *)o->patches + patch * d;
        cpu->vector->add(d, token, (const float *)o->position + l * d, (float *)o->x + i * d);
    }
}

status cpu_assemble_tokens(struct backend *backend, const struct assemble_tokens *o, struct error *error)
{
    (void)error;
    return cpu_run_rows(cpu_of(backend), o->batch * (o->per_image + 1), o->width, assemble_rows, o);
}

enum { COLUMN_CHUNK = 32 }; /* sums over samples are shared out by columns, so that their order never changes */

static void assemble_backward_columns(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct assemble_tokens_backward *o = operation;
    size_t d = o->width, length = o->per_image + 1, from = first * COLUMN_CHUNK,
           to = last * COLUMN_CHUNK < d ? last * COLUMN_CHUNK : d;
    for (size_t i = 0; i < o->batch * length; i++) {
        size_t b = i / length, l = i % length, patch = b * o->per_image + (l > 0 ? l - 1 : 0);
        const float *dx = (const float *)o->dx + i * d;
        if (l == 0)
            cpu->vector->axpy(to - from, 1.0f, dx + from, (float *)o->dclass + from);
        else
            memcpy((float *)o->dpatches + patch * d + from, dx + from, (to - from) * sizeof *dx);
        cpu->vector->axpy(to - from, 1.0f, dx + from, (float *)o->dposition + l * d + from);
    }
}

status cpu_assemble_tokens_backward(struct backend *backend, const struct assemble_tokens_backward *o,
                                    struct error *error)
{
    (void)error;
    return cpu_run_rows(cpu_of(backend), (o->width + COLUMN_CHUNK - 1) / COLUMN_CHUNK,
                        o->batch * (o->per_image + 1) * COLUMN_CHUNK, assemble_backward_columns, o);
}

static void embed_rows(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct embed_tokens *o = operation;
    for (size_t i = first; i < last; i++) {
        size_t b = i / o->positions, l = i % o->positions, token = (size_t)o->tokens[b * o->context + l];
        cpu->vector->add(o->width, (const float *)o->table + token * o->width,
                         (const float *)o->position + l * o->width, (float *)o->x + i * o->width);
    }
}

status cpu_embed_tokens(struct backend *backend, const struct embed_tokens *o, struct error *error)
{
    (void)error;
    return cpu_run_rows(cpu_of(backend), o->batch * o->positions, o->width, embed_rows, o);
}

static void embed_backward_columns(struct cpu *cpu, const void *operation, size_t first, size_t last)
{
    const struct embed_tokens_backward *o = operation;
    size_t d = o->width, from = first * COLUMN_CHUNK, to = last * COLUMN_CHUNK < d ? last * COLUMN_CHUNK : d;
    for (size_t i = 0; i < o->batch * o->positions; i++) {
        size_t b = i / o->positions, l = i % o->positions, token = (size_t)o->tokens[b * o->context + l];
        const float *dx = (const float *)o->dx + i * d + from;
        cpu->vector->axpy(to - from, 1.0f, dx, (float *)o->dtable + token * d + from);
        cpu->vector->axpy(to - from, 1.0f, dx, (float *)o->dposition + l * d + from);
    }
}

status cpu_embed_tokens_backward(struct backend *backend, const struct embed_tokens_backward *o, struct error *error)
{
    (void)error;
    return cpu_run_rows(cpu_of(backend), (o->width + COLUMN_CHUNK - 1) / COLUMN_CHUNK,
                        o->batch * o->positions * COLUMN_CHUNK, embed_backward_columns, o);
}
