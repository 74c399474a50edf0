#include "adapters/autoencoder.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/scope.h"

status autoencoder_create(struct autoencoder **result, struct backend *backend, struct arena *arena, size_t width,
                          size_t code, enum parameters_mode mode, struct error *error)
{
    SCOPED(autoencoder_destroy_at) struct autoencoder *coder = xcalloc(1, sizeof *coder);
    *coder = (struct autoencoder){.backend = backend, .width = width, .code = code};
    size_t index[AUTOENCODER_TENSORS] = {0};
    parameters_create(&coder->parameters, backend);
    struct parameters *p = coder->parameters;
    TRY(parameters_add(p, "encoder.0.weight", 2, (size_t[]){code, width}, 1, 0, &index[0], error));
    TRY(parameters_add(p, "encoder.0.bias", 1, &code, 1, 0, &index[1], error));
    TRY(parameters_add(p, "decoder.0.weight", 2, (size_t[]){width, code}, 1, 0, &index[2], error));
    TRY(parameters_add(p, "decoder.0.bias", 1, &width, 1, 0, &index[3], error));
    TRY(parameters_allocate(p, arena, mode, error));
    struct weight w[AUTOENCODER_TENSORS];
    for (size_t i = 0; i < AUTOENCODER_TENSORS; i++)
        w[i] = parameters_weight(p, index[i]);
    coder->encoder = (struct linear){.weight = w[0], .bias = w[1], .out = code, .in = width, .exact = true};
    coder->decoder = (struct linear){.weight = w[2], .bias = w[3], .out = width, .in = code, .exact = true};
    *result = TAKE(coder);
    return OK;
}

void autoencoder_destroy(struct autoencoder *coder)
{
    if (coder == NULL)
        return;
    parameters_destroy(coder->parameters);
    free(coder);
}

status autoencoder_initialize(struct autoencoder *coder, uint64_t seed, uint32_t task, struct error *error)
{
    for (size_t i = 0; i < coder->parameters->count; i++) {
        const struct parameter *p = &coder->parameters->list[i];
        float bound = 1.0f / sqrtf((float)(i < 2 ? coder->width : coder->code));
        OWNED float *values = xmalloc(array_size(p->size, sizeof *values));
        struct rng rng = rng_make(seed, RNG_SELECTOR, task, (uint32_t)i);
        for (size_t k = 0; k < p->size; k++)
            values[k] = bound * (2.0f * rng_uniform(&rng, k) - 1.0f);
        TRY(parameters_upload(coder->parameters, p, values, error));
    }
    return OK;
}

struct coder_pass {
    struct tensor input, before_code, code, before_output, output, doutput, errors;
};

static status take(struct tensor *tensor, struct arena *arena, size_t rows, size_t columns, struct error *error)
{
    return tensor_take(tensor, arena, TENSOR_F32, "autoencoder", 2, (size_t[]){rows, columns}, error);
}

/* With gradients: doutput = 2 (r − y) / (n · width), the gradient of the mean error. */
static status forward(struct autoencoder *coder, struct arena *arena, const struct tensor *features, bool gradients,
                      struct coder_pass *pass, struct error *error)
{
    struct backend *backend = coder->backend;
    size_t n = features->shape[0];
    TRY(take(&pass->input, arena, n, coder->width, error));
    TRY(take(&pass->before_code, arena, n, coder->code, error));
    TRY(take(&pass->code, arena, n, coder->code, error));
    TRY(take(&pass->before_output, arena, n, coder->width, error));
    TRY(take(&pass->output, arena, n, coder->width, error));
    TRY(take(&pass->doutput, arena, n, coder->width, error));
    TRY(take(&pass->errors, arena, 1, n, error));
    TRY(backend->ops->activate(
        backend,
        &(struct activate){.activation = ACTIVATION_SIGMOID, .x = matrix_of(features), .out = matrix_of(&pass->input)},
        error));
    TRY(linear_forward(backend, &coder->encoder,
                       &(struct linear_forward){.x = matrix_of(&pass->input),
                                                .y = matrix_of(&pass->code),
                                                .before = matrix_of(&pass->before_code),
                                                .activation = ACTIVATION_RELU},
                       error));
    TRY(linear_forward(backend, &coder->decoder,
                       &(struct linear_forward){.x = matrix_of(&pass->code),
                                                .y = matrix_of(&pass->output),
                                                .before = matrix_of(&pass->before_output),
                                                .activation = ACTIVATION_SIGMOID},
                       error));
    return backend->ops->squared_error(
        backend,
        &(struct squared_error){.x = matrix_of(&pass->output),
                                .y = matrix_of(&pass->input),
                                .dx = gradients ? matrix_of(&pass->doutput) : (struct matrix){0},
                                .scale = 1.0f / (float)(n * coder->width),
                                .errors = pass->errors.data},
        error);
}

status autoencoder_errors(struct autoencoder *coder, struct arena *arena, const struct tensor *features, float *errors,
                          struct error *error)
{
    struct arena_mark mark = arena_mark(arena);
    struct coder_pass pass;
    TRY(forward(coder, arena, features, false, &pass, error));
    TRY(coder->backend->ops->download(coder->backend, errors, pass.errors.data, features->shape[0] * sizeof *errors,
                                      error));
    arena_release(arena, mark);
    return OK;
}

static status backward(struct autoencoder *coder, struct arena *arena, const struct coder_pass *pass,
                       struct error *error)
{
    struct backend *backend = coder->backend;
    struct tensor dcode;
    struct matrix doutput = matrix_of(&pass->doutput);
    TRY(take(&dcode, arena, pass->code.shape[0], coder->code, error));
    TRY(backend->ops->activate_backward(
        backend,
        &(struct activate_backward){
            .activation = ACTIVATION_SIGMOID, .x = matrix_of(&pass->before_output), .dy = doutput, .dx = doutput},
        error));
    TRY(linear_backward_weights(backend, &coder->decoder, matrix_of(&pass->code), doutput, error));
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = doutput,
                                          .b = matrix_rows(coder->decoder.weight.value, coder->width, coder->code),
                                          .out = matrix_of(&dcode),
                                          .exact = true,
                                          .activation = ACTIVATION_RELU,
                                          .before = matrix_of(&pass->before_code),
                                          .backward = true},
                           error));
    return linear_backward_weights(backend, &coder->encoder, matrix_of(&pass->input), matrix_of(&dcode), error);
}

status autoencoder_train_step(struct autoencoder *coder, struct arena *arena, const struct tensor *features,
                              const struct step_state *state, const struct update_rule *rule, float *loss,
                              struct error *error)
{
    struct arena_mark mark = arena_mark(arena);
    struct coder_pass pass;
    size_t n = features->shape[0];
    TRY(forward(coder, arena, features, true, &pass, error));
    TRY(backward(coder, arena, &pass, error));
    TRY(parameters_step(coder->parameters, state, rule, error));
    OWNED float *errors = xmalloc(array_size(n, sizeof *errors));
    TRY(coder->backend->ops->download(coder->backend, errors, pass.errors.data, n * sizeof *errors, error));
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)errors[i];
    *loss = (float)(total / (double)n);
    arena_release(arena, mark);
    return OK;
}

int autoencoder_choice(const float *errors, const float *thresholds, size_t n)
{
    int best = -1;
    for (size_t i = 0; i < n; i++) /* a coder that diverged, whose errors are NaN, never wins */
        if (errors[i] <= INFINITY && (best < 0 || errors[i] < errors[best]))
            best = (int)i;
    return best >= 0 && errors[best] <= thresholds[best] ? best : -1;
}
