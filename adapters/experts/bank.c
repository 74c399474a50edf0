/* The adapters' tensors: declaration, initialisation, counts, frozen set, steps. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/experts/expert.h"
#include "adapters/routers/router.h"
#include "adapters/statistics.h"
#include "core/alloc.h"
#include "core/digest.h"
#include "core/scope.h"

/* Update flags of a block: of the experts, of the routers and of the shared expert, whatever the settings. */
static size_t flags_per_block(const struct adapter_settings *s)
{
    return s->experts + s->tasks + s->shared_expert;
}

static status declare_bank(struct adapter_tower *tower, size_t index, struct error *error)
{
    const struct adapter_settings *s = &tower->adapters->settings;
    struct expert_bank *bank = &tower->banks[index];
    size_t e = s->experts, m = tower->hidden, d = tower->width, t = s->tasks, flags = index * flags_per_block(s);
    size_t *own = bank->parts, *shared = bank->shared;
    const char *const *names = expert_kind_of(s)->parts;
    const struct router_kind *router = router_kind_of(s);
    char name[64];
    struct {
        size_t *index;
        const char *prefix, *name;
        int rank;
        size_t shape[3], segments, flag;
        bool there;
    } tensors[] = {
        {&own[EXPERT_DOWN], "", names[0], 3, {e, m, d}, e, flags, true},
        {&own[EXPERT_DOWN_BIAS], "", names[1], 2, {e, m}, e, flags, true},
        {&own[EXPERT_UP], "", names[2], 3, {e, d, m}, e, flags, true},
        {&own[EXPERT_UP_BIAS], "", names[3], 2, {e, d}, e, flags, true},
        {&bank->routers, "", "router_list", 3, {t, d, e}, t, flags + e, router->weights},
        {&bank->noise, "", "w_noise_list", 3, {t, d, e}, t, flags + e, router->noise_weights},
        {&shared[EXPERT_DOWN], "shared.", names[0], 3, {1, m, d}, 1, flags + e + t, s->shared_expert},
        {&shared[EXPERT_DOWN_BIAS], "shared.", names[1], 2, {1, m}, 1, flags + e + t, s->shared_expert},
        {&shared[EXPERT_UP], "shared.", names[2], 3, {1, d, m}, 1, flags + e + t, s->shared_expert},
        {&shared[EXPERT_UP_BIAS], "shared.", names[3], 2, {1, d}, 1, flags + e + t, s->shared_expert},
    };
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        if (!tensors[i].there)
            continue;
        snprintf(name, sizeof name, "%zu.%s%s", bank->block, tensors[i].prefix, tensors[i].name);
        TRY(parameters_add(tower->parameters, name, tensors[i].rank, tensors[i].shape, tensors[i].segments,
                           tensors[i].flag, tensors[i].index, error));
    }
    /* A router without weights and no shared expert have flags, too, which adapters_begin_task sets. */
    size_t *declared = &tower->parameters->flags_count;
    *declared = *declared > flags + flags_per_block(s) ? *declared : flags + flags_per_block(s);
    return OK;
}

static status take_counts(struct adapter_tower *tower, struct arena *arena, struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    const struct adapter_settings *s = &tower->adapters->settings;
    size_t experts = s->experts;
    struct tensor counts, zeros;
    TRY(tensor_take(&counts, arena, TENSOR_I32, "selection counts", 3, (size_t[]){2, tower->blocks, experts}, error));
    TRY(backend->ops->zero(backend, counts.data, tensor_bytes(&counts), error));
    for (size_t b = 0; b < tower->blocks;
         b++) { /* adapters_counts and adapters_read_counts_and_frozen count on this order */
        tower->banks[b].counts = (int32_t *)counts.data + b * experts;
        tower->banks[b].frozen = (int32_t *)counts.data + (tower->blocks + b) * experts;
        tower->banks[b].used =
            tower->parameters->flags != NULL ? tower->parameters->flags + b * flags_per_block(s) : NULL;
    }
    if (!s->shared_expert && !router_kind_of(s)->averages)
        return OK;
    TRY(tensor_take(&zeros, arena, TENSOR_F32, "no preference", 2, (size_t[]){s->tasks, tower->width}, error));
    tower->no_preference = zeros.data;
    return backend->ops->zero(backend, zeros.data, tensor_bytes(&zeros), error);
}

static void open_pass(struct adapter_tower *tower, size_t index, size_t block)
{
    struct expert_pass *pass = &tower->passes[index];
    *pass = (struct expert_pass){.tower = tower,
                                 .block = block,
                                 .index = index,
                                 .bank = index * tower->blocks / tower->adapted,
                                 .decider = pass - index % expert_decision_users(tower)};
    expert_hook(pass, &tower->hooks[block]);
}

static status take_means(struct adapter_tower *tower, struct arena *arena, struct error *error)
{
    size_t m = tower->hidden, d = tower->width;
    const size_t sizes[EXPERT_PARTS] = {m * d, m, d * m, d};
    for (size_t b = 0; router_kind_of(&tower->adapters->settings)->averages && b < tower->blocks; b++)
        for (int i = 0; i < EXPERT_PARTS; i++) {
            struct tensor part;
            TRY(tensor_take(&part, arena, TENSOR_F32, "mean of the experts", 1, &sizes[i], error));
            tower->banks[b].mean[i] = part.data;
        }
    return OK;
}

static status create_tower(struct adapters *adapters, enum tower which, const struct clip_dimensions *dimensions,
                           struct arena *arena, enum parameters_mode mode, struct error *error)
{
    struct adapter_tower *tower = &adapters->towers[which];
    size_t all = which == TOWER_IMAGE ? dimensions->image_blocks : dimensions->text_blocks;
    tower->adapters = adapters;
    tower->hidden = adapters_hidden(dimensions, &adapters->settings, which);
    const struct expert_kind *kind = expert_kind_of(&adapters->settings);
    tower->activation = kind->models_activation ? adapters->settings.activation : kind->activation;
    tower->adapted = adapter_place_count(&adapters->settings.place, dimensions, which);
    tower->blocks = adapter_place_count_banks(&adapters->settings.place, dimensions, which);
    tower->decisions = adapters->settings.place.decisions > 0 && tower->adapted > 0 ? adapters->settings.place.decisions
                                                                                    : tower->adapted;
    tower->banks = xcalloc(tower->blocks + 1, sizeof *tower->banks);
    tower->passes = xcalloc(tower->adapted + 1, sizeof *tower->passes);
    tower->hooks = xcalloc(all, sizeof *tower->hooks);
    parameters_create(&tower->parameters, adapters->backend);
    for (size_t block = 0, b = 0; b < tower->blocks; block++)
        if (adapter_place_has_bank(&adapters->settings.place, dimensions, which, block)) {
            tower->banks[b].block = block;
            TRY(declare_bank(tower, b++, error));
        }
    TRY(parameters_allocate(tower->parameters, arena, mode, error));
    for (size_t block = 0, i = 0; block < all; block++)
        if (adapter_place_has(&adapters->settings.place, dimensions, which, block))
            open_pass(tower, i++, block);
    TRY(take_means(tower, arena, error));
    return take_counts(tower, arena, error);
}

static status check_settings(const struct adapter_settings *s, struct error *error)
{
    if (s->experts == 0 || s->top_k == 0 || s->tasks == 0)
        return error_set(error, ERROR_ARGUMENT, "adapter: experts, top_k and tasks must be at least 1");
    TRY(router_check(s, "adapter", error));
    if (s->balance != BALANCE_NONE && s->experts < 2)
        return error_set(
            error, ERROR_ARGUMENT,
            "adapter: there is nothing to balance with 1 expert; set adapter.balance_loss to none or raise "
            "adapter.experts");
    if (!(s->dropout >= 0 && s->dropout < 1))
        return error_set(error, ERROR_ARGUMENT, "adapter: dropout must be at least 0 and below 1, found %g",
                         (double)s->dropout);
    return expert_kind_of(s)->check(s, error);
}

status adapters_create(struct adapters **result, struct backend *backend, struct arena *arena,
                       const struct clip_dimensions *dimensions, const struct adapter_settings *settings,
                       enum parameters_mode mode, struct error *error)
{
    TRY(check_settings(settings, error));
    TRY(adapter_place_check("adapter", &settings->place, dimensions, error));
    SCOPED(adapters_destroy_at) struct adapters *adapters = xcalloc(1, sizeof *adapters);
    adapters->backend = backend;
    adapters->settings = *settings;
    adapters->towers[TOWER_IMAGE].width = dimensions->image_width;
    adapters->towers[TOWER_TEXT].width = dimensions->text_width;
    for (int t = 0; t < TOWERS; t++)
        TRY(create_tower(adapters, (enum tower)t, dimensions, arena, mode, error));
    *result = TAKE(adapters);
    return OK;
}

void adapters_destroy(struct adapters *adapters)
{
    if (adapters == NULL)
        return;
    for (int t = 0; t < TOWERS; t++) {
        parameters_destroy(adapters->towers[t].parameters);
        free(adapters->towers[t].banks);
        free(adapters->towers[t].passes);
        free(adapters->towers[t].hooks);
    }
    free(adapters);
}

status adapters_initialize(struct adapters *adapters, const struct block *const blocks[TOWERS], uint64_t seed,
                           struct error *error)
{
    const struct router_kind *router = router_kind_of(&adapters->settings);
    for (int t = 0; t < TOWERS; t++) {
        struct adapter_tower *tower = &adapters->towers[t];
        const struct block *all = blocks != NULL ? blocks[t] : NULL;
        for (size_t b = 0; b < tower->blocks; b++) {
            TRY(expert_kind_of(&adapters->settings)
                    ->start(tower, b, all != NULL ? &all[tower->banks[b].block] : NULL, seed, error));
            if (router->start != NULL)
                TRY(router->start(tower, b, seed, error));
        }
    }
    return OK;
}

static status compare_values(const struct adapters *adapters, const float *x, const float *y, size_t n, bool *same,
                             struct error *error)
{
    OWNED float *a = xmalloc(array_size(n, 2 * sizeof *a));
    float *b = a + n;
    struct backend *backend = adapters->backend;
    TRY(backend->ops->download(backend, a, x, n * sizeof *a, error));
    TRY(backend->ops->download(backend, b, y, n * sizeof *b, error));
    *same = memcmp(a, b, n * sizeof *a) == 0;
    return OK;
}

/* Blocks share one MLP, or have equal copies of it, as after reading a file with a tensor for each block. */
static status compare_mlps(const struct adapters *adapters, const struct block *x, const struct block *y, bool *same,
                           struct error *error)
{
    const struct linear *const pairs[][2] = {{&x->c_fc, &y->c_fc}, {&x->c_proj, &y->c_proj}};
    *same = true;
    for (size_t i = 0; *same && i < 2 && x->c_fc.weight.value != y->c_fc.weight.value; i++) {
        const struct linear *a = pairs[i][0], *b = pairs[i][1];
        TRY(compare_values(adapters, a->weight.value, b->weight.value, a->out * a->in, same, error));
        if (*same)
            TRY(compare_values(adapters, a->bias.value, b->bias.value, a->out, same, error));
    }
    return OK;
}

status adapters_check_start(const struct adapters *adapters, const struct block *const blocks[TOWERS],
                            struct error *error)
{
    const struct adapter_settings *s = &adapters->settings;
    if (expert_kind_of(s)->place != REPLACES_MLP || s->start == EXPERT_START_INDEPENDENT)
        return OK;
    for (int t = 0; t < TOWERS; t++) {
        const struct adapter_tower *tower = &adapters->towers[t];
        for (size_t i = 0; i < tower->adapted; i++) {
            size_t block = tower->passes[i].block, first = tower->banks[tower->passes[i].bank].block;
            bool same;
            TRY(compare_mlps(adapters, &blocks[t][block], &blocks[t][first], &same, error));
            if (!same)
                return error_set(
                    error, ERROR_ARGUMENT,
                    "adapter.share_across_blocks is %zu and adapter.kind %s, whose experts start as the MLP "
                    "of their block, but blocks %zu and %zu of this model have different MLPs; set "
                    "adapter.share_across_blocks=0 or adapter.kind=lora, or take a model whose blocks "
                    "share (model.share_groups)",
                    adapters->settings.place.banks, expert_kind_of(&adapters->settings)->name, first, block);
        }
    }
    return OK;
}

bool adapters_in_tower(const struct adapters *adapters, enum tower tower)
{
    return adapters->towers[tower].blocks > 0;
}

size_t adapters_hidden(const struct clip_dimensions *n, const struct adapter_settings *s, enum tower tower)
{
    return expert_kind_of(s)->hidden(s, tower == TOWER_IMAGE ? n->image_hidden : n->text_hidden);
}

size_t adapters_rounded_bytes(const struct clip_dimensions *n, const struct adapter_settings *s)
{
    enum { BF16_BYTES = 2 };
    const struct expert_kind *kind = expert_kind_of(s);
    size_t widths[TOWERS] = {n->image_width, n->text_width}, bytes = 0,
           kept = (s->routing == ROUTING_PER_TOKEN ? 0 : s->experts) + s->shared_expert +
                  (router_kind_of(s)->averages && kind->place == BESIDE_MLP); /* the mean */
    for (int t = 0; t < TOWERS; t++) {
        size_t hidden = adapters_hidden(n, s, (enum tower)t);
        if (experts_go_by_sample(kind->models_activation ? s->activation : kind->activation, widths[t], hidden))
            bytes +=
                adapter_place_count_banks(&s->place, n, (enum tower)t) * kept * 2 * hidden * widths[t] * BF16_BYTES;
    }
    return bytes;
}

struct cost_experts adapters_cost(const struct clip_dimensions *n, const struct adapter_settings *s)
{
    struct cost_experts cost = {.top_k = s->top_k + s->shared_expert,
                                .replace_mlp = expert_kind_of(s)->place == REPLACES_MLP};
    for (int t = 0; t < TOWERS; t++) {
        cost.hidden[t] = adapters_hidden(n, s, (enum tower)t);
        cost.blocks[t] = adapter_place_count(&s->place, n, (enum tower)t);
        while (cost.blocks[t] > 0 && !adapter_place_has(&s->place, n, (enum tower)t, cost.below[t]))
            cost.below[t]++;
    }
    return cost;
}

size_t adapters_choices(const struct adapters *adapters, enum tower tower)
{
    const struct adapter_settings *s = &adapters->settings;
    return s->routing == ROUTING_PER_TOKEN || router_kind_of(s)->averages
               ? 0
               : adapters->towers[tower].decisions * s->top_k;
}

size_t adapters_decision_block(const struct adapters *adapters, enum tower which, size_t decision)
{
    const struct adapter_tower *tower = &adapters->towers[which];
    return tower->passes[decision * expert_decision_users(tower)].block;
}

void adapters_keep_choices(struct adapters *adapters, enum tower tower, int32_t *choices, float *gates)
{
    adapters->towers[tower].choices = choices;
    adapters->towers[tower].gates = gates;
}

int adapters_router(const struct adapter_settings *settings, size_t task)
{
    return settings->tasks == 1 ? 0 : (int)task;
}

void adapters_add_loss(struct adapters *adapters, float *loss, float *balance, float share)
{
    adapters->loss = loss;
    adapters->balance = balance;
    adapters->loss_share = share;
}

status adapters_begin_task(struct adapters *adapters, size_t task, struct error *error)
{
    struct backend *backend = adapters->backend;
    size_t experts = adapters->settings.experts, tasks = adapters->settings.tasks,
           router = (size_t)adapters_router(&adapters->settings, task);
    if (router >= tasks)
        return error_set(error, ERROR_ARGUMENT, "adapters: task %zu, but there are routers for %zu tasks only", task,
                         tasks);
    for (int t = 0; t < TOWERS; t++) {
        struct adapter_tower *tower = &adapters->towers[t];
        TRY(statistics_begin_task(tower, error));
        TRY(parameters_reset(tower->parameters, error));
        TRY(backend->ops->zero(backend, tower->parameters->flags, tower->parameters->flags_count * sizeof(int32_t),
                               error));
        for (size_t b = 0; b < tower->blocks; b++) {
            int32_t *router_flag = tower->banks[b].used + experts + router, one = 1;
            assert(router_flag < tower->parameters->flags + tower->parameters->flags_count);
            TRY(backend->ops->upload(backend, router_flag, &one, sizeof one, error));
            if (adapters->settings.shared_expert)
                TRY(backend->ops->upload(backend, tower->banks[b].used + experts + tasks, &one, sizeof one, error));
            TRY(backend->ops->zero(backend, tower->banks[b].counts, experts * sizeof(int32_t), error));
        }
        struct statistic statistic;
        for (size_t i = 0; adapters_statistic(adapters, (enum tower)t, i, &statistic); i++)
            if (statistic.of_task)
                TRY(backend->ops->zero(backend, statistic.data, statistic.n * sizeof(int32_t), error));
    }
    return OK;
}

status adapters_before_update(struct adapters *adapters, const struct update_rule *rule, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        TRY(statistics_square(&adapters->towers[t], rule->guard, error));
    return OK;
}

struct adapter_counts adapters_counts(const struct adapters *adapters, enum tower which)
{
    const struct adapter_tower *tower = &adapters->towers[which];
    if (tower->blocks == 0)
        return (struct adapter_counts){0};
    return (struct adapter_counts){tower->banks[0].counts, tower->banks[0].frozen,
                                   tower->blocks * adapters->settings.experts};
}

status adapters_read_counts(const struct adapters *adapters, enum tower tower, size_t block, int32_t *counts,
                            struct error *error)
{
    return adapters->backend->ops->download(adapters->backend, counts, adapters->towers[tower].banks[block].counts,
                                            adapters->settings.experts * sizeof *counts, error);
}

status adapters_read_counts_and_frozen(const struct adapters *adapters, enum tower which, int32_t *counts,
                                       struct error *error)
{
    struct adapter_counts device = adapters_counts(adapters, which);
    if (device.n == 0)
        return OK;
    return adapters->backend->ops->download(adapters->backend, counts, device.counts, 2 * device.n * sizeof *counts,
                                            error);
}

status adapters_write_frozen(struct adapters *adapters, enum tower tower, size_t block, const int32_t *frozen,
                             struct error *error)
{
    return adapters->backend->ops->upload(adapters->backend, adapters->towers[tower].banks[block].frozen, frozen,
                                          adapters->settings.experts * sizeof *frozen, error);
}

/* --- Whether they changed --- */

void adapter_identity_create(struct adapter_identity *identity, const struct adapters *adapters)
{
    *identity = (struct adapter_identity){.adapters = adapters};
    for (int t = 0; t < TOWERS; t++)
        identity->changes[t] = xcalloc(adapters->towers[t].parameters->segments, sizeof *identity->changes[t]);
}

void adapter_identity_free(struct adapter_identity *identity)
{
    for (int t = 0; t < TOWERS; t++)
        free(identity->changes[t]);
    *identity = (struct adapter_identity){0};
}

status adapter_identity_read(struct adapter_identity *identity, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        TRY(parameters_changes(identity->adapters->towers[t].parameters, identity->changes[t], error));
    return OK;
}

uint64_t adapter_identity_of(const struct adapter_identity *identity, enum tower which, size_t router,
                             const int32_t *chosen)
{
    const struct adapter_tower *tower = &identity->adapters->towers[which];
    const struct parameter *list = tower->parameters->list;
    const uint64_t *changes = identity->changes[which];
    const struct adapter_settings *s = &identity->adapters->settings;
    bool all = adapters_choices(identity->adapters, which) == 0;
    size_t used = all ? s->experts : s->top_k;
    uint64_t digest = 0;
    for (size_t decision = 0; decision < tower->decisions; decision++) {
        const struct expert_bank *bank = &tower->banks[decision * tower->blocks / tower->decisions];
        if (router_kind_of(s)->weights)
            digest = digest_quick(&changes[list[bank->routers].first_segment + router], sizeof *changes, digest);
        for (size_t i = 0; s->shared_expert && i < EXPERT_PARTS; i++)
            digest = digest_quick(&changes[list[bank->shared[i]].first_segment], sizeof *changes, digest);
        for (size_t k = 0; k < used; k++) {
            uint64_t expert[1 + EXPERT_PARTS] = {all ? k : (uint64_t)chosen[decision * used + k]};
            for (size_t i = 0; i < EXPERT_PARTS; i++)
                expert[1 + i] = changes[list[bank->parts[i]].first_segment + expert[0]];
            digest = digest_quick(expert, sizeof expert, digest);
        }
    }
    return digest;
}
