/* Experts that replace the MLP. They start as copies of it, each tensor with normal noise of `init_noise` times its own
 * standard deviation, or of init_noise itself (Wu et al. 2022, "Residual Mixture of Experts", arXiv 2204.09636); where gates
 * sum up to 1, a block whose experts start without noise computes what it did before. Or each is drawn by itself as an MLP
 * from scratch is. */
#include <stdlib.h>
#include <string.h>

#include "adapters/experts/expert.h"
#include "core/alloc.h"
#include "core/rng.h"
#include "core/scope.h"
#include "models/vit.h"

static size_t hidden(const struct adapter_settings *settings, size_t mlp)
{
    return mlp;
}

static void set_unread(struct adapter_settings *s)
{
    s->bottleneck = 0;
    s->scale = 1;
    s->dropout = 0;
    s->input = EXPERT_INPUT_POST_LN;
}

static status check(const struct adapter_settings *s, struct error *error)
{
    if (s->scale != 1 || s->dropout != 0 || s->input != EXPERT_INPUT_POST_LN || s->shared_expert)
        return error_set(error, ERROR_ARGUMENT,
                         "adapter: experts of kind ffn replace the MLP and have its input; expected scale 1, no "
                         "dropout, expert_input post_ln and no shared expert, found %g, %g, %s and %s",
                         (double)s->scale, (double)s->dropout,
                         s->input == EXPERT_INPUT_POST_LN ? "post_ln" : "residual", s->shared_expert ? "one" : "none");
    if (s->activation == ACTIVATION_NONE)
        return error_set(error, ERROR_ARGUMENT, "adapter: experts of kind ffn need to know the activation of the MLPs");
    return OK;
}

static void draw_part(float *values, size_t n, bool bias, const struct rng *rng, uint64_t base)
{
    for (size_t i = 0; i < n; i++)
        values[i] = bias ? 0 : VIT_START_DEVIATION * rng_normal(rng, base + i);
}

/* A stack of copies of one of the MLP's tensors, or of draws in its place. */
static status start_part(struct adapter_tower *tower, size_t index, const float *mlp, const struct rng *rng, int part,
                         float *values, struct error *error)
{
    const struct parameter *p = &tower->parameters->list[index];
    const struct adapter_settings *s = &tower->adapters->settings;
    struct backend *backend = tower->adapters->backend;
    size_t experts = p->shape[0], n = p->size / experts;
    double noise = (double)s->init_noise;
    TRY(backend->ops->download(backend, values, mlp, n * sizeof *values, error));
    if (!s->absolute_noise && noise > 0)
        noise *= expert_deviation(values, n);
    for (size_t e = experts; e-- > 0;) {
        float *expert = values + e * n;
        uint64_t base = ((uint64_t)e * EXPERT_PARTS + (uint64_t)part) << 32;
        memmove(expert, values, n * sizeof *values);
        if (s->start == EXPERT_START_INDEPENDENT)
            draw_part(expert, n, part % 2 == 1, rng, base);
        else if (noise > 0)
            expert_add_noise(expert, n, noise, rng, base);
    }
    return parameters_upload(tower->parameters, p, values, error);
}

static status start(struct adapter_tower *tower, size_t index, const struct block *block, uint64_t seed,
                    struct error *error)
{
    if (block == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "adapter: experts of kind ffn start from a model's MLPs; there are none");
    const struct expert_bank *bank = &tower->banks[index];
    const struct weight from[EXPERT_PARTS] = {block->c_fc.weight, block->c_fc.bias, block->c_proj.weight,
                                              block->c_proj.bias};
    struct rng rng =
        rng_make(seed, RNG_INIT, 1 + 2 * TOWERS + (uint32_t)(tower - tower->adapters->towers), (uint32_t)bank->block);
    OWNED float *values = xmalloc(array_size(tower->parameters->list[bank->parts[EXPERT_DOWN]].size, sizeof *values));
    for (int i = 0; i < EXPERT_PARTS; i++)
        TRY(start_part(tower, bank->parts[i], from[i].value, &rng, i, values, error));
    return OK;
}

const struct expert_kind expert_ffn = {
    .name = "ffn",
    .source = "Wu et al. 2022, Residual Mixture of Experts, arXiv 2204.09636",
    .formula = "x + Σ g_k MLP_k(ln_2(x)), each MLP_k the model's MLP at first, with noise of adapter.init_noise, or "
               "drawn by itself (adapter.start)",
    .place = REPLACES_MLP,
    .models_activation = true,
    .parts = {"c_fc.weight", "c_fc.bias", "c_proj.weight", "c_proj.bias"},
    .hidden = hidden,
    .set_unread = set_unread,
    .check = check,
    .start = start};
