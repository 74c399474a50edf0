#include "models/class_head.h"

#include <stdlib.h>

#include "core/alloc.h"

static status add_loss(struct backend *backend, const struct tensor *logits, const struct tensor *dlogits,
                       const struct image_labels *labels, float smoothing, float weight, float *loss, float *right,
                       struct error *error)
{
    return backend->ops->cross_entropy(backend,
                                       &(struct cross_entropy){.logits = matrix_of(logits),
                                                               .dlogits = matrix_of(dlogits),
                                                               .labels = labels->labels,
                                                               .others = labels->others,
                                                               .shares = labels->shares,
                                                               .smoothing = smoothing,
                                                               .weight = weight,
                                                               .loss = loss,
                                                               .right = right},
                                       error);
}

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
    return add_loss(backend, &head->logits, &head->dlogits, labels, smoothing, weight, loss, head->right, error);
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

/* ---- pairs ---- */

/* drows and dcolumns become gradients of half the loss: of every row over the columns, where its own has its number. */
static status one_direction(struct backend *backend, struct arena *arena, const struct class_contrast *contrast,
                            const struct tensor *features[2], const int32_t *own, struct tensor *drows,
                            struct tensor *dcolumns, struct error *error)
{
    struct class_head head;
    TRY(class_head_logits(backend, arena, features[0], features[1], contrast->scale, &head, error));
    TRY(class_head_loss(backend, &head, &(struct image_labels){.labels = own}, contrast->smoothing,
                        contrast->weight / 2, contrast->loss, error));
    return class_head_backward(backend, arena, &head, drows, dcolumns, error);
}

/* to += from */
static status join(struct backend *backend, struct tensor *to, const struct tensor *from, struct error *error)
{
    return backend->ops->weighted_sum(backend,
                                      &(struct weighted_sum){.count = 2,
                                                             .n = to->shape[0] * to->shape[1],
                                                             .inputs = {to->data, from->data},
                                                             .weights = {1, 1},
                                                             .out = to->data},
                                      error);
}

/* dtext[labels[i]] += dx[i] */
static status add_by_label(struct backend *backend, struct arena *arena, const struct class_contrast *contrast,
                           const struct tensor *dx, struct tensor *dtext, struct error *error)
{
    struct tensor unused; /* a label is a token at the only position, whose gradient nobody wants */
    TRY(tensor_take(dtext, arena, TENSOR_F32, "gradient of the texts", 2, contrast->text_features->shape, error));
    TRY(tensor_take(&unused, arena, TENSOR_F32, "gradient of the position", 1, &dx->shape[1], error));
    TRY(backend->ops->zero(backend, dtext->data, tensor_bytes(dtext), error));
    TRY(backend->ops->zero(backend, unused.data, tensor_bytes(&unused), error));
    return backend->ops->embed_tokens_backward(backend,
                                               &(struct embed_tokens_backward){.batch = dx->shape[0],
                                                                               .positions = 1,
                                                                               .context = 1,
                                                                               .width = dx->shape[1],
                                                                               .tokens = contrast->labels,
                                                                               .dx = dx->data,
                                                                               .dtable = dtext->data,
                                                                               .dposition = unused.data},
                                               error);
}

status class_head_contrast(struct backend *backend, struct arena *arena, const struct class_contrast *contrast,
                           struct tensor *dimage, struct tensor *dtext, struct error *error)
{
    const struct tensor *images = contrast->image_features;
    struct tensor own, texts, of_images[2], of_texts[2];
    TRY(tensor_take(&own, arena, TENSOR_I32, "numbers of the pairs", 1, images->shape, error));
    TRY(tensor_take(&texts, arena, TENSOR_F32, "texts of the labels", 2, images->shape, error));
    TRY(backend->ops->arange(backend, &(struct arange){.count = images->shape[0], .step = 1, .out = own.data}, error));
    TRY(backend->ops->gather_rows(backend,
                                  &(struct gather_rows){.x = matrix_of(contrast->text_features),
                                                        .out = matrix_of(&texts),
                                                        .rows = contrast->labels},
                                  error));
    TRY(one_direction(backend, arena, contrast, (const struct tensor *[]){images, &texts}, own.data, &of_images[0],
                      &of_texts[0], error));
    TRY(one_direction(backend, arena, contrast, (const struct tensor *[]){&texts, images}, own.data, &of_texts[1],
                      &of_images[1], error));
    TRY(join(backend, &of_images[0], &of_images[1], error));
    TRY(join(backend, &of_texts[0], &of_texts[1], error));
    *dimage = of_images[0];
    return add_by_label(backend, arena, contrast, &of_texts[0], dtext, error);
}

/* ---- the trained head ---- */

static status build(struct linear_head *head, struct arena *arena, enum parameters_mode mode, struct error *error)
{
    struct linear *linear = &head->linear;
    size_t weight, bias;
    if (linear->in == 0 || linear->out == 0)
        return error_set(error, ERROR_ARGUMENT, "linear head: expected features and classes, found %zu and %zu",
                         linear->in, linear->out);
    parameters_create(&head->parameters, head->backend);
    TRY(parameters_add(head->parameters, "head.weight", 2, (size_t[]){linear->out, linear->in}, 1, 0, &weight, error));
    TRY(parameters_add(head->parameters, "head.bias", 1, &linear->out, 1, 0, &bias, error));
    TRY(parameters_allocate(head->parameters, arena, mode, error));
    linear->weight = parameters_weight(head->parameters, weight);
    linear->bias = parameters_weight(head->parameters, bias);
    return OK;
}

status linear_head_create(struct linear_head **result, struct backend *backend, struct arena *arena, size_t width,
                          size_t classes, enum parameters_mode mode, struct error *error)
{
    SCOPED(linear_head_destroy_at) struct linear_head *head = xcalloc(1, sizeof *head);
    head->backend = backend;
    head->linear = (struct linear){.out = classes, .in = width, .exact = true};
    TRY(build(head, arena, mode, error));
    *result = TAKE(head);
    return OK;
}

void linear_head_destroy(struct linear_head *head)
{
    if (head == NULL)
        return;
    parameters_destroy(head->parameters);
    free(head);
}

status linear_head_logits(const struct linear_head *head, struct arena *arena, const struct tensor *features,
                          struct linear_pass *pass, struct error *error)
{
    size_t shape[2] = {features->shape[0], head->linear.out};
    *pass = (struct linear_pass){.features = *features};
    TRY(tensor_take(&pass->logits, arena, TENSOR_F32, "logits", 2, shape, error));
    TRY(tensor_take(&pass->dlogits, arena, TENSOR_F32, "gradient of the logits", 2, shape, error));
    TRY(head->backend->ops->zero(head->backend, pass->dlogits.data, tensor_bytes(&pass->dlogits), error));
    return linear_forward(head->backend, &head->linear,
                          &(struct linear_forward){.x = matrix_of(features), .y = matrix_of(&pass->logits)}, error);
}

status linear_head_loss(const struct linear_head *head, struct linear_pass *pass, const struct image_labels *labels,
                        float smoothing, float weight, float *loss, struct error *error)
{
    return add_loss(head->backend, &pass->logits, &pass->dlogits, labels, smoothing, weight, loss, pass->right, error);
}

status linear_head_backward(const struct linear_head *head, struct arena *arena, const struct linear_pass *pass,
                            struct tensor *dfeatures, struct error *error)
{
    struct matrix dlogits = matrix_of(&pass->dlogits);
    TRY(linear_backward_weights(head->backend, &head->linear, matrix_of(&pass->features), dlogits, error));
    if (dfeatures == NULL)
        return OK;
    TRY(tensor_take(dfeatures, arena, TENSOR_F32, "gradient of the features", 2, pass->features.shape, error));
    return linear_backward(head->backend, &head->linear,
                           &(struct linear_backward){.dy = dlogits, .dx = matrix_of(dfeatures)}, error);
}
