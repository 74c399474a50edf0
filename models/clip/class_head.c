#include "models/class_head.h"

static status normalised(struct backend *backend, struct arena *arena, const struct tensor *features, struct tensor *y,
                         struct tensor *norms, struct error *error)
{
    TRY(tensor_take(y, arena, TENSOR_F32, "normalised features", 2, features->shape, error));
    TRY(tensor_take(norms, arena, TENSOR_F32, "norms", 1, features->shape, error));
    return backend->ops->normalize(
        backend, &(struct normalize){.x = matrix_of(features), .y = matrix_of(y), .norms = norms->data}, error);
}

status class_head_logits(struct backend *backend, struct arena *arena, const struct tensor *image_features,
                         const struct tensor *text_features, float scale, struct class_head *head, struct error *error)
{
    size_t shape[2] = {image_features->shape[0], text_features->shape[0]};
    *head = (struct class_head){.scale = scale};
    TRY(normalised(backend, arena, image_features, &head->image, &head->image_norms, error));
    TRY(normalised(backend, arena, text_features, &head->text, &head->text_norms, error));
    TRY(tensor_take(&head->logits, arena, TENSOR_F32, "logits", 2, shape, error));
    TRY(tensor_take(&head->dlogits, arena, TENSOR_F32, "gradient of the logits", 2, shape, error));
    TRY(backend->ops->zero(backend, head->dlogits.data, tensor_bytes(&head->dlogits), error));
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = matrix_of(&head->image),
                                             .b = matrix_of(&head->text),
                                             .transpose_b = true,
                                             .exact = true,
                                             .scale = scale,
                                             .out = matrix_of(&head->logits)},
                              error);
}

status class_head_loss(struct backend *backend, struct class_head *head, const struct image_labels *labels,
                       float smoothing, float weight, float *loss, struct error *error)
{
    return backend->ops->cross_entropy(backend,
                                       &(struct cross_entropy){.logits = matrix_of(&head->logits),
                                                               .dlogits = matrix_of(&head->dlogits),
                                                               .labels = labels->labels,
                                                               .others = labels->others,
                                                               .shares = labels->shares,
                                                               .smoothing = smoothing,
                                                               .weight = weight,
                                                               .loss = loss},
                                       error);
}

static status side_backward(struct backend *backend, struct arena *arena, const struct class_head *head, bool image,
                            struct tensor *dx, struct error *error)
{
    const struct tensor *own = image ? &head->image : &head->text, *other = image ? &head->text : &head->image;
    TRY(tensor_take(dx, arena, TENSOR_F32, "gradient of the features", 2, own->shape, error));
    struct arena_mark mark = arena_mark(arena);
    struct tensor dnormal;
    TRY(tensor_take(&dnormal, arena, TENSOR_F32, "gradient of the normalised features", 2, own->shape, error));
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = matrix_of(&head->dlogits),
                                          .transpose_a = !image,
                                          .b = matrix_of(other),
                                          .exact = true,
                                          .scale = head->scale,
                                          .out = matrix_of(&dnormal)},
                           error));
    TRY(backend->ops->zero(backend, dx->data, tensor_bytes(dx), error));
    TRY(backend->ops->normalize_backward(
        backend,
        &(struct normalize_backward){.y = matrix_of(own),
                                     .dy = matrix_of(&dnormal),
                                     .dx = matrix_of(dx),
                                     .norms = (image ? &head->image_norms : &head->text_norms)->data},
        error));
    arena_release(arena, mark);
    return OK;
}

status class_head_backward(struct backend *backend, struct arena *arena, const struct class_head *head,
                           struct tensor *dimage, struct tensor *dtext, struct error *error)
{
    TRY(side_backward(backend, arena, head, true, dimage, error));
    return dtext != NULL ? side_backward(backend, arena, head, false, dtext, error) : OK;
}
