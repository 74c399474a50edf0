/* Learned tokens: a sample is a row of [B, L · d], its tokens are columns of the row. */
#include "models/clip/learned.h"

/* 0 … B − 1 */
static status number_samples(const struct block_context *context, size_t batch, const int32_t **numbers,
                             struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, context->arena, TENSOR_I32, "samples", 1, &batch, error));
    *numbers = memory.data;
    return context->backend->ops->arange(context->backend,
                                         &(struct arange){.count = batch, .step = 1, .out = memory.data}, error);
}

/* Tokens first … first + count − 1 of every sample. */
static struct matrix tokens_of(const struct tensor *x, size_t first, size_t count)
{
    size_t width = x->shape[2];
    return matrix_columns(matrix_rows(x->data, x->shape[0], x->shape[1] * width), first * width, count * width);
}

static status copy_tokens(const struct block_context *context, const int32_t *samples, struct matrix from,
                          struct matrix to, struct error *error)
{
    return context->backend->ops->gather_rows(context->backend,
                                              &(struct gather_rows){.x = from, .out = to, .rows = samples}, error);
}

static status take_tokens(struct tensor *tokens, const struct embedding_hook *hook, const struct block_context *context,
                          const struct tensor *like, struct error *error)
{
    return tensor_take(tokens, context->arena, TENSOR_F32, "learned tokens", 3,
                       (size_t[]){like->shape[0], hook->count, like->shape[2]}, error);
}

status learned_insert(const struct embedding_hook *hook, const struct block_context *context, const struct tensor *x,
                      const struct tensor *y, struct error *error)
{
    struct tensor tokens;
    const int32_t *samples;
    size_t others = x->shape[1] - 1;
    TRY(take_tokens(&tokens, hook, context, x, error));
    TRY(hook->forward(hook->state, context, &tokens, error));
    TRY(number_samples(context, x->shape[0], &samples, error));
    TRY(copy_tokens(context, samples, tokens_of(x, 0, 1), tokens_of(y, 0, 1), error));
    TRY(copy_tokens(context, samples, tokens_of(&tokens, 0, hook->count), tokens_of(y, 1, hook->count), error));
    return copy_tokens(context, samples, tokens_of(x, 1, others), tokens_of(y, 1 + hook->count, others), error);
}

status learned_add_positions(const struct block_context *context, float *position, const struct tensor *x,
                             struct error *error)
{
    const int32_t *samples;
    struct matrix out = tokens_of(x, 0, x->shape[1]), same = matrix_rows(position, out.rows, out.columns);
    same.stride = 0; /* one row for all samples */
    TRY(number_samples(context, out.rows, &samples, error));
    return context->backend->ops->scatter_rows(context->backend,
                                               &(struct scatter_rows){.x = same, .out = out, .rows = samples}, error);
}

status learned_take(const struct embedding_hook *hook, const struct block_context *context, const struct tensor *dy,
                    const struct tensor *dx, struct error *error)
{
    struct tensor dtokens;
    const int32_t *samples;
    size_t others = dx->shape[1] - 1;
    TRY(number_samples(context, dy->shape[0], &samples, error));
    TRY(copy_tokens(context, samples, tokens_of(dy, 0, 1), tokens_of(dx, 0, 1), error));
    TRY(copy_tokens(context, samples, tokens_of(dy, 1 + hook->count, others), tokens_of(dx, 1, others), error));
    if (!hook->trained)
        return OK;
    TRY(take_tokens(&dtokens, hook, context, dy, error));
    TRY(copy_tokens(context, samples, tokens_of(dy, 1, hook->count), tokens_of(&dtokens, 0, hook->count), error));
    return hook->backward(hook->state, context, &dtokens, error);
}
