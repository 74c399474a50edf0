/* Low-rank experts beside the MLP: ε(x) = scale · (W_up dropout(ReLU(W_down x + b_down)) + b_up). W_down starts
 * Kaiming-uniform with a = √5, so uniform within ±1/√d, and everything else zero: a fresh expert adds nothing. */
#include <math.h>
#include <stdlib.h>

#include "adapters/experts/expert.h"
#include "core/alloc.h"
#include "core/scope.h"

static size_t hidden(const struct adapter_settings *settings, size_t mlp)
{
    return settings->bottleneck;
}

static status check(const struct adapter_settings *s, struct error *error)
{
    if (s->bottleneck == 0)
        return error_set(error, ERROR_ARGUMENT, "adapter: experts, top_k, bottleneck and tasks must be at least 1");
    if (s->dropout > 0 && s->bottleneck % 4 != 0)
        return error_set(
            error, ERROR_ARGUMENT,
            "adapter: with dropout the bottleneck must be a multiple of 4, found %zu; set adapter.dropout to 0 or "
            "change adapter.bottleneck",
            s->bottleneck);
    return OK;
}

static status draw_down(struct adapter_tower *tower, size_t index, const struct rng *rng, struct error *error)
{
    const struct parameter *p = &tower->parameters->list[index];
    OWNED float *values = xmalloc(array_size(p->size, sizeof *values));
    float bound = 1.0f / sqrtf((float)tower->width);
    for (size_t i = 0; i < p->size; i++)
        values[i] = bound * (2.0f * rng_uniform(rng, i) - 1.0f);
    return parameters_upload(tower->parameters, p, values, error);
}

static status start(struct adapter_tower *tower, size_t index, const struct block *block, uint64_t seed,
                    struct error *error)
{
    const struct expert_bank *bank = &tower->banks[index];
    uint32_t which = (uint32_t)(tower - tower->adapters->towers);
    struct rng rng = rng_make(seed, RNG_INIT, 1 + which, (uint32_t)bank->block);
    TRY(draw_down(tower, bank->parts[EXPERT_DOWN], &rng, error));
    rng = rng_make(seed, RNG_INIT, 1 + TOWERS + which, (uint32_t)bank->block);
    return tower->adapters->settings.shared_expert ? draw_down(tower, bank->shared[EXPERT_DOWN], &rng, error) : OK;
}

const struct expert_kind expert_lora = {
    .name = "lora",
    .source = "Yu et al., CVPR 2024 (MoE-Adapters)",
    .formula = "x + MLP(ln_2(x)) + Σ g_k s (W_up ReLU(W_down x + b_down) + b_up)",
    .place = BESIDE_MLP,
    .activation = ACTIVATION_RELU,
    .parts = {"down_proj.weight", "down_proj.bias", "up_proj.weight", "up_proj.bias"},
    .hidden = hidden,
    .check = check,
    .start = start};
