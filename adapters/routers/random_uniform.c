/* No router at all (Huang et al. 2023, "Experts Weights Averaging", arXiv 2308.06093): in training samples, or tokens, are
 * cut at random into equal groups, one for each expert; otherwise they go to the mean of the experts. */
#include "adapters/routers/router.h"

static status check(const struct adapter_settings *s, struct error *error)
{
    if (s->top_k != 1)
        return error_set(
            error, ERROR_ARGUMENT,
            "adapter: with adapter.router random_uniform a sample goes to one expert, but adapter.top_k is "
            "%zu; set adapter.top_k=1",
            s->top_k);
    if (s->tasks != 1)
        return error_set(error, ERROR_ARGUMENT,
                         "adapter: with adapter.router random_uniform tasks have no routers of their own; set "
                         "adapter.routers=one");
    if (s->place.decisions > 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "adapter: with adapter.router random_uniform there is no decision that blocks could share; set "
            "adapter.share_routing=0");
    return OK;
}

/* Where only some rows of a block are wanted, all tokens are cut into groups, and then tokens that are not wanted are left
 * out. */
static status choose_among_all(struct expert_pass *pass, const struct block_context *context, int32_t *owner,
                               struct error *error)
{
    const struct expert_bank *bank = &pass->tower->banks[pass->bank];
    size_t rows = pass->routed.dispatch.samples, batch = rows / context->rows_per_sample,
           all = batch * context->positions;
    struct backend *backend = context->backend;
    struct arena_mark mark = arena_mark(context->arena);
    struct dispatch whole;
    struct tensor routers;
    TRY(tensor_take(&routers, context->arena, TENSOR_I32, "routers of the tokens", 1, &all, error));
    TRY(backend->ops->spread_positions(backend,
                                       &(struct spread_positions){.batch = batch,
                                                                  .positions = context->positions,
                                                                  .lengths = context->lengths,
                                                                  .value = context->router,
                                                                  .out = routers.data},
                                       error));
    TRY(expert_dispatch_take(&whole, context, all, pass->routed.dispatch.experts, 1, error));
    TRY(backend->ops->partition(
        backend,
        &(struct partition){.router = routers.data,
                            .base = expert_numbers(context) + context->first * context->positions,
                            .state = context->state,
                            .dispatch = &whole,
                            .counts = bank->counts,
                            .used = bank->used,
                            .add_used = router_adds_used(pass),
                            .frozen = bank->frozen},
        error));
    /* integers, moved as floats of the same width */
    TRY(backend->ops->gather_rows(backend,
                                  &(struct gather_rows){.x = matrix_rows(whole.chosen, all, 1),
                                                        .out = matrix_rows(owner, rows, 1),
                                                        .rows = context->rows},
                                  error));
    arena_release(context->arena, mark);
    return OK;
}

static status forward(struct expert_pass *pass, const struct block_context *context, size_t before, struct error *error)
{
    const struct expert_bank *bank = &pass->tower->banks[pass->bank];
    struct partition partition = {.router = pass->router,
                                  .base = expert_numbers(context) + before,
                                  .state = context->state,
                                  .dispatch = &pass->routed.dispatch,
                                  .counts = bank->counts,
                                  .used = bank->used,
                                  .add_used = router_adds_used(pass),
                                  .frozen = bank->frozen};
    if (pass->routed.tokens && context->rows != NULL) {
        struct tensor owner;
        TRY(tensor_take(&owner, context->arena, TENSOR_I32, "experts of the rows", 1, &pass->routed.dispatch.samples,
                        error));
        TRY(choose_among_all(pass, context, owner.data, error));
        partition.owner = owner.data;
        partition.counts = partition.used = NULL;
    }
    return context->backend->ops->partition(context->backend, &partition, error);
}

static status backward(struct expert_pass *pass, const struct block_context *context, float *dgates, float *dx,
                       struct error *error)
{
    return OK;
}

const struct router_kind router_random_uniform = {
    .name = "random_uniform",
    .source = "Huang et al. 2023, Experts Weights Averaging, arXiv 2308.06093",
    .formula = "training: an expert from a random partition into equal groups, g = 1; else the mean of the experts",
    .averages = true,
    .balances = 1u << BALANCE_NONE,
    .check = check,
    .forward = forward,
    .backward = backward};
