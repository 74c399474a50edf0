#include "harness/train/services/distillation.h"

/* The student's side of a step. */
struct pass {
    const struct distillation *d;
    struct backend *backend;
    struct arena *arena;
    struct tensor features, normal, norms; /* of the images */
    struct tensor dnormal;
};

static status take(struct tensor *tensor, const struct pass *p, const char *name, size_t rows, size_t columns,
                   struct error *error)
{
    return tensor_take(tensor, p->arena, TENSOR_F32, name, 2, (size_t[]){rows, columns}, error);
}

static status take_zero(struct tensor *tensor, const struct pass *p, const char *name, size_t rows, size_t columns,
                        struct error *error)
{
    TRY(take(tensor, p, name, rows, columns, error));
    return p->backend->ops->zero(p->backend, tensor->data, tensor_bytes(tensor), error);
}

/* out = e · images · textsᵀ, or its transpose */
static status similarities(const struct pass *p, const struct tensor *images, bool transposed, struct tensor *out,
                           struct error *error)
{
    const struct tensor *texts = p->d->teacher_texts, *rows = transposed ? texts : images,
                        *columns = transposed ? images : texts;
    TRY(take(out, p, "similarities", rows->shape[0], columns->shape[0], error));
    return p->backend->ops->gemm(p->backend,
                                 &(struct gemm){.a = matrix_of(rows),
                                                .b = matrix_of(columns),
                                                .transpose_b = true,
                                                .exact = true,
                                                .scale = p->d->scale,
                                                .out = matrix_of(out)},
                                 error);
}

/* dnormal += the gradient of weight · D over rows of images or, transposed, over rows of texts. */
static status add_direction(const struct pass *p, bool transposed, float weight, struct error *error)
{
    const struct distillation *d = p->d;
    struct arena_mark mark = arena_mark(p->arena);
    struct tensor targets, logits, dlogits;
    TRY(similarities(p, d->teacher_images, transposed, &targets, error));
    TRY(similarities(p, &p->normal, transposed, &logits, error));
    TRY(take_zero(&dlogits, p, "gradient of the similarities", logits.shape[0], logits.shape[1], error));
    TRY(p->backend->ops->soft_cross_entropy(
        p->backend,
        &(struct soft_cross_entropy){.logits = matrix_of(&logits),
                                     .targets = matrix_of(&targets),
                                     .dlogits = matrix_of(&dlogits),
                                     .temperature = d->temperature,
                                     .weight = weight * d->temperature * d->temperature,
                                     .loss = d->loss},
        error));
    TRY(p->backend->ops->gemm(p->backend,
                              &(struct gemm){.a = matrix_of(&dlogits),
                                             .transpose_a = transposed,
                                             .b = matrix_of(d->teacher_texts),
                                             .exact = true,
                                             .scale = d->scale,
                                             .accumulate = true,
                                             .out = matrix_of(&p->dnormal)},
                              error));
    arena_release(p->arena, mark);
    return OK;
}

static status normalize(struct pass *p, struct error *error)
{
    size_t images = p->features.shape[0], embed = p->features.shape[1];
    TRY(take(&p->normal, p, "normalised features", images, embed, error));
    TRY(take(&p->norms, p, "their norms", images, 1, error));
    TRY(take_zero(&p->dnormal, p, "gradient of the normalised features", images, embed, error));
    return p->backend->ops->normalize(
        p->backend,
        &(struct normalize){.x = matrix_of(&p->features), .y = matrix_of(&p->normal), .norms = p->norms.data}, error);
}

static status normalize_backward(const struct pass *p, struct tensor *dfeatures, struct error *error)
{
    TRY(take_zero(dfeatures, p, "gradient of the features", p->features.shape[0], p->features.shape[1], error));
    return p->backend->ops->normalize_backward(p->backend,
                                               &(struct normalize_backward){.y = matrix_of(&p->normal),
                                                                            .dy = matrix_of(&p->dnormal),
                                                                            .dx = matrix_of(dfeatures),
                                                                            .norms = p->norms.data},
                                               error);
}

status distillation_add(const struct distillation *d, struct arena *arena, struct error *error)
{
    struct pass p = {.d = d, .backend = d->student->backend, .arena = arena};
    struct arena_mark mark = arena_mark(arena);
    struct encoding encoding = {.arena = arena, .training = true};
    struct tower_pass tower;
    struct tensor dfeatures;
    TRY(clip_encode_images(d->student, &encoding, d->images, &tower, &p.features, error));
    TRY(normalize(&p, error));
    TRY(add_direction(&p, false, d->image_weight, error));
    TRY(add_direction(&p, true, d->text_weight, error));
    TRY(normalize_backward(&p, &dfeatures, error));
    TRY(clip_encode_backward(d->student, &encoding, &tower, &dfeatures, error));
    arena_release(arena, mark);
    return OK;
}
