#include "models/linear_head.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "models/class_head.h"

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
    struct linear_head *head = xcalloc(1, sizeof *head);
    head->backend = backend;
    head->linear = (struct linear){.out = classes, .in = width, .exact = true};
    status built = build(head, arena, mode, error);
    if (built != OK) {
        linear_head_destroy(head);
        return built;
    }
    *result = head;
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
    struct class_head own = {.logits = pass->logits, .dlogits = pass->dlogits};
    return class_head_loss(head->backend, &own, labels, smoothing, weight, loss, error);
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
