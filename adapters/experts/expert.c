/* y += Σ_k g_k ε_k(x), ε(x) = scale · (W_up dropout(ReLU(W_down x + b_down)) + b_up), all samples of an expert in one
 * product. */
#include "adapters/experts/expert.h"
#include "adapters/statistics.h"

/* Where the random numbers of a block begin, apart from those of every other block: 2⁴⁰ numbers each. */
static uint64_t numbers_of(const struct block_site *site)
{
    return ((uint64_t)site->tower << 16 | site->block) << 40;
}

/* The place of the site's block among those with adapters; it is one of them. */
static size_t bank_at(const struct adapter_tower *tower, const struct block_site *site)
{
    size_t b = 0;
    while (tower->banks[b].block != site->block)
        b++;
    return b;
}

static status take(struct tensor *tensor, const struct block_site *site, enum tensor_type type, const char *name,
                   size_t rows, size_t columns, struct error *error)
{
    return tensor_take(tensor, site->arena, type, name, 2, (size_t[]){rows, columns}, error);
}

static bool is_balanced(const struct adapter_tower *tower, const struct block_site *site)
{
    return site->training && tower->adapters->settings.balance != BALANCE_NONE && tower->adapters->loss != NULL;
}

static status take_balance(struct expert_pass *pass, const struct block_site *site, size_t batch,
                           const struct adapter_settings *s, struct error *error)
{
    struct tensor gates, logits;
    TRY(take(&gates, site, TENSOR_F32, "gates' share of the balance loss", batch, s->top_k, error));
    TRY(take(&logits, site, TENSOR_F32, "logits' share of the balance loss", 2 * batch, s->experts, error));
    pass->balance_gates = gates.data;
    pass->balance_logits = logits.data;
    pass->balance_noise = pass->balance_logits + batch * s->experts;
    return OK;
}

static status take_dispatch(const struct adapter_tower *tower, struct expert_pass *pass, const struct block_site *site,
                            size_t batch, struct error *error)
{
    const struct adapter_settings *s = &tower->adapters->settings;
    struct tensor ids, gates, offsets, noise;
    TRY(take(&ids, site, TENSOR_I32, "dispatch", 4 * batch, s->top_k, error));
    TRY(take(&gates, site, TENSOR_F32, "gates", batch, s->top_k, error));
    TRY(take(&offsets, site, TENSOR_I32, "offsets", 1, s->experts + 1, error));
    TRY(take(&noise, site, TENSOR_F32, "router noise", 2 * batch, s->experts, error));
    int32_t *id = ids.data;
    size_t choices = batch * s->top_k;
    pass->dispatch =
        (struct dispatch){.samples = batch,
                          .experts = s->experts,
                          .top_k = s->top_k,
                          .chosen = tower->choices != NULL ? tower->choices + bank_at(tower, site) * choices : id,
                          .gates = gates.data,
                          .slot = id + choices,
                          .sample = id + 2 * choices,
                          .choice = id + 3 * choices,
                          .offsets = offsets.data};
    pass->noise_logits = noise.data;
    pass->drawn = pass->noise_logits + batch * s->experts;
    pass->balance_gates = pass->balance_logits = pass->balance_noise = NULL;
    return is_balanced(tower, site) ? take_balance(pass, site, batch, s, error) : OK;
}

static status run_router(const struct adapter_tower *tower, const struct block_site *site, const struct tensor *x,
                         struct expert_pass *pass, struct error *error)
{
    const struct adapter_settings *s = &tower->adapters->settings;
    const struct expert_bank *bank = &tower->banks[bank_at(tower, site)];
    return site->backend->ops->route(
        site->backend,
        &(struct route){.batch = x->shape[0],
                        .positions = x->shape[1],
                        .width = tower->width,
                        .experts = s->experts,
                        .top_k = s->top_k,
                        .routers = s->tasks,
                        .x = x->data,
                        .routers_value = parameters_weight(tower->parameters, bank->routers).value,
                        .noise_value = parameters_weight(tower->parameters, bank->noise).value,
                        .router = site->router,
                        .training = site->training,
                        .noise = site->noise,
                        .noise_base = numbers_of(site) + site->first * s->experts,
                        .state = site->state,
                        .epsilon = s->noise_epsilon,
                        .dispatch = &pass->dispatch,
                        .noise_logits = pass->noise_logits,
                        .drawn = pass->drawn,
                        .logits = pass->balance_logits,
                        .counts = bank->counts,
                        .used = bank->used,
                        .frozen = bank->frozen},
        error);
}

/* What the routing of this batch adds to the loss; with its gradients, which the backward pass finds in pass. */
static status add_balance(const struct adapter_tower *tower, const struct block_site *site,
                          const struct expert_pass *pass, struct error *error)
{
    const struct adapters *adapters = tower->adapters;
    if (!is_balanced(tower, site))
        return OK;
    return site->backend->ops->balance(
        site->backend,
        &(struct balance){.dispatch = &pass->dispatch,
                          .epsilon = adapters->settings.noise_epsilon,
                          .weight = adapters->settings.balance_weight * adapters->loss_share,
                          .logits = pass->balance_logits,
                          .noise_logits = pass->noise_logits,
                          .drawn = pass->drawn,
                          .dnoise_logits = pass->balance_noise,
                          .dgates = pass->balance_gates,
                          .loss = adapters->loss},
        error);
}

/* rows [slots · L, out] = act(rows [slots · L, in] · W[e]ᵀ + b[e]), or · W[e] without a bias on the way back */
static status expert_product(const struct adapter_tower *tower, const struct block_site *site,
                             const struct expert_pass *pass, size_t weight, const size_t *bias, bool transpose,
                             const struct tensor *in, const struct tensor *out, enum activation activation,
                             struct error *error)
{
    const struct parameters *group = tower->parameters;
    const size_t *shape = group->list[weight].shape;
    return site->backend->ops->grouped_gemm(
        site->backend,
        &(struct grouped_gemm){.kind = GROUPED_ROWS,
                               .groups = pass->dispatch.experts,
                               .rows_per_slot = in->shape[0] / (pass->dispatch.samples * pass->dispatch.top_k),
                               .offsets = pass->dispatch.offsets,
                               .a = matrix_of(in),
                               .b = matrix_rows(parameters_weight(group, weight).value, shape[0] * shape[1], shape[2]),
                               .transpose_b = transpose,
                               .bias = bias != NULL ? parameters_weight(group, *bias).value : NULL,
                               .activation = activation,
                               .out = matrix_of(out)},
        error);
}

static status forward(void *state, const struct block_site *site, const struct tensor *x, const struct tensor *ln2_x,
                      struct tensor *y, struct error *error)
{
    struct adapter_tower *tower = state;
    const struct adapter_settings *s = &tower->adapters->settings;
    const struct expert_bank *bank = &tower->banks[bank_at(tower, site)];
    struct expert_pass *pass = &tower->passes[bank_at(tower, site)];
    struct backend *backend = site->backend;
    if (site->router == NULL)
        return OK;
    size_t batch = x->shape[0], length = x->shape[1], rows = batch * s->top_k * length;
    uint64_t before = (uint64_t)site->first * s->top_k * length * s->bottleneck; /* hidden units of samples before */
    const struct tensor *input = s->input == EXPERT_INPUT_POST_LN ? ln2_x : x;
    struct arena_mark start = arena_mark(site->arena);
    TRY(take_dispatch(tower, pass, site, batch, error));
    enum tensor_type type = backend_operand_type(backend);
    TRY(take(&pass->hidden, site, type, "expert hidden units", rows, s->bottleneck, error));
    struct arena_mark kept = arena_mark(site->arena);
    struct tensor gathered; /* the samples by slot, then the experts' outputs */
    TRY(take(&gathered, site, type, "samples by expert", rows, tower->width, error));

    TRY(run_router(tower, site, x, pass, error));
    TRY(add_balance(tower, site, pass, error));
    if (site->training)
        TRY(statistics_see(tower, site, bank_at(tower, site), &pass->dispatch, input, error));
    TRY(backend->ops->dispatch_gather(backend,
                                      &(struct dispatch_gather){.dispatch = &pass->dispatch,
                                                                .rows_per_sample = length,
                                                                .width = tower->width,
                                                                .x_type = input->type,
                                                                .out_type = gathered.type,
                                                                .x = input->data,
                                                                .out = gathered.data},
                                      error));
    TRY(expert_product(tower, site, pass, bank->down_weight, &bank->down_bias, true, &gathered, &pass->hidden,
                       ACTIVATION_RELU, error));
    if (site->training && s->dropout > 0)
        TRY(backend->ops->dispatch_dropout(backend,
                                           &(struct dispatch_dropout){.dispatch = &pass->dispatch,
                                                                      .rows_per_sample = length,
                                                                      .width = s->bottleneck,
                                                                      .probability = s->dropout,
                                                                      .base = numbers_of(site) + before,
                                                                      .state = site->state,
                                                                      .type = pass->hidden.type,
                                                                      .hidden = pass->hidden.data},
                                           error));
    TRY(expert_product(tower, site, pass, bank->up_weight, &bank->up_bias, true, &pass->hidden, &gathered,
                       ACTIVATION_NONE, error));
    TRY(backend->ops->dispatch_combine(backend,
                                       &(struct dispatch_combine){.dispatch = &pass->dispatch,
                                                                  .rows_per_sample = length,
                                                                  .width = tower->width,
                                                                  .rows_type = gathered.type,
                                                                  .rows = gathered.data,
                                                                  .weights = pass->dispatch.gates,
                                                                  .scale = s->scale,
                                                                  .y = y->data},
                                       error));
    arena_release(site->arena, site->training ? kept : start);
    return OK;
}

/* dW[e] += aᵀ b over the expert's rows; the bias's gradient too where it is the sum of a's rows. */
static status weight_gradient(const struct adapter_tower *tower, const struct block_site *site,
                              const struct expert_pass *pass, size_t weight, const size_t *bias, const struct tensor *a,
                              const struct tensor *b, struct error *error)
{
    const struct parameters *group = tower->parameters;
    const size_t *shape = group->list[weight].shape;
    return site->backend->ops->grouped_gemm(
        site->backend,
        &(struct grouped_gemm){
            .kind = GROUPED_WEIGHTS,
            .groups = pass->dispatch.experts,
            .rows_per_slot = a->shape[0] / (pass->dispatch.samples * pass->dispatch.top_k),
            .offsets = pass->dispatch.offsets,
            .a = matrix_of(a),
            .b = matrix_of(b),
            .out = matrix_rows(parameters_weight(group, weight).gradient, shape[0] * shape[1], shape[2]),
            .column_sums = bias != NULL ? parameters_weight(group, *bias).gradient : NULL,
            .frozen = tower->banks[bank_at(tower, site)].frozen},
        error);
}

static status gather(const struct block_site *site, const struct expert_pass *pass, const struct tensor *x,
                     struct tensor *out, struct error *error)
{
    return site->backend->ops->dispatch_gather(site->backend,
                                               &(struct dispatch_gather){.dispatch = &pass->dispatch,
                                                                         .rows_per_sample = x->shape[1],
                                                                         .width = x->shape[2],
                                                                         .x_type = x->type,
                                                                         .out_type = out->type,
                                                                         .x = x->data,
                                                                         .out = out->data},
                                               error);
}

static status router_gradient(const struct adapter_tower *tower, const struct block_site *site,
                              const struct expert_pass *pass, const struct tensor *x, float *dgates, void *dx,
                              struct error *error)
{
    if (pass->balance_gates != NULL)
        TRY(site->backend->ops->weighted_sum(site->backend,
                                             &(struct weighted_sum){.count = 2,
                                                                    .n = pass->dispatch.samples * pass->dispatch.top_k,
                                                                    .inputs = {dgates, pass->balance_gates},
                                                                    .weights = {1, 1},
                                                                    .out = dgates},
                                             error));
    const struct expert_bank *bank = &tower->banks[bank_at(tower, site)];
    struct weight routers = parameters_weight(tower->parameters, bank->routers),
                  noise = parameters_weight(tower->parameters, bank->noise);
    return site->backend->ops->route_backward(site->backend,
                                              &(struct route_backward){.batch = x->shape[0],
                                                                       .positions = x->shape[1],
                                                                       .width = tower->width,
                                                                       .experts = pass->dispatch.experts,
                                                                       .top_k = pass->dispatch.top_k,
                                                                       .x = x->data,
                                                                       .routers_value = routers.value,
                                                                       .noise_value = noise.value,
                                                                       .router = site->router,
                                                                       .dispatch = &pass->dispatch,
                                                                       .noise_logits = pass->noise_logits,
                                                                       .drawn = pass->drawn,
                                                                       .dgates = dgates,
                                                                       .dlogits = pass->balance_logits,
                                                                       .dnoise_logits = pass->balance_noise,
                                                                       .drouters = routers.gradient,
                                                                       .dnoise = noise.gradient,
                                                                       .dx = dx},
                                              error);
}

static status backward(void *state, const struct block_site *site, const struct tensor *x, const struct tensor *ln2_x,
                       const struct tensor *dy, struct tensor *dx, struct tensor *dln2, struct error *error)
{
    struct adapter_tower *tower = state;
    const struct adapter_settings *s = &tower->adapters->settings;
    const struct expert_bank *bank = &tower->banks[bank_at(tower, site)];
    struct expert_pass *pass = &tower->passes[bank_at(tower, site)];
    struct backend *backend = site->backend;
    if (site->router == NULL)
        return OK;
    bool post_ln = s->input == EXPERT_INPUT_POST_LN;
    size_t length = x->shape[1], rows = x->shape[0] * s->top_k * length;
    struct arena_mark mark = arena_mark(site->arena);
    struct tensor gathered, dhidden, dgates;
    enum tensor_type type = backend_operand_type(backend);
    TRY(take(&gathered, site, type, "gradients by expert", rows, tower->width, error));
    TRY(take(&dhidden, site, type, "gradient of the expert hidden units", rows, s->bottleneck, error));
    TRY(take(&dgates, site, TENSOR_F32, "gradient of the gates", x->shape[0], s->top_k, error));

    TRY(gather(site, pass, dy, &gathered, error));
    TRY(expert_product(tower, site, pass, bank->up_weight, NULL, false, &gathered, &dhidden, ACTIVATION_NONE, error));
    struct weight up_bias = parameters_weight(tower->parameters, bank->up_bias);
    TRY(backend->ops->expert_gate_backward(backend,
                                           &(struct expert_gate_backward){.dispatch = &pass->dispatch,
                                                                          .rows_per_sample = length,
                                                                          .hidden = s->bottleneck,
                                                                          .width = tower->width,
                                                                          .scale = s->scale,
                                                                          .keep = 1.0f - s->dropout,
                                                                          .type = type,
                                                                          .h = pass->hidden.data,
                                                                          .dh = dhidden.data,
                                                                          .dy = gathered.data,
                                                                          .up_bias = up_bias.value,
                                                                          .dgates = dgates.data,
                                                                          .dup_bias = up_bias.gradient,
                                                                          .frozen = bank->frozen},
                                           error));
    TRY(weight_gradient(tower, site, pass, bank->up_weight, NULL, &gathered, &pass->hidden, error));
    TRY(gather(site, pass, post_ln ? ln2_x : x, &gathered, error));
    TRY(weight_gradient(tower, site, pass, bank->down_weight, &bank->down_bias, &dhidden, &gathered, error));
    TRY(router_gradient(tower, site, pass, x, dgates.data, dx->data, error));
    if (dx->data != NULL) {
        TRY(expert_product(tower, site, pass, bank->down_weight, NULL, false, &dhidden, &gathered, ACTIVATION_NONE,
                           error));
        TRY(backend->ops->dispatch_combine(backend,
                                           &(struct dispatch_combine){.dispatch = &pass->dispatch,
                                                                      .rows_per_sample = length,
                                                                      .width = tower->width,
                                                                      .rows_type = type,
                                                                      .rows = gathered.data,
                                                                      .scale = 1.0f,
                                                                      .y = post_ln ? dln2->data : dx->data},
                                           error));
    }
    arena_release(site->arena, mark);
    return OK;
}

struct block_hook adapters_hook(struct adapters *adapters, enum tower tower)
{
    bool trained = adapters->towers[tower].parameters->gradients != NULL;
    uint64_t absent = ~(uint64_t)0;
    for (size_t b = 0; b < adapters->towers[tower].blocks; b++)
        absent &= ~((uint64_t)1 << adapters->towers[tower].banks[b].block);
    return (struct block_hook){.state = &adapters->towers[tower],
                               .place = BESIDE_MLP,
                               .trained = trained && adapters_in_tower(adapters, tower),
                               .absent = absent,
                               .forward = forward,
                               .backward = trained ? backward : NULL};
}
