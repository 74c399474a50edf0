#include "adapters/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "adapters/experts/expert.h"
#include "adapters/merge/policies.h"
#include "core/alloc.h"
#include "core/scope.h"

static status take(struct arena *arena, struct backend *backend, enum tensor_type type, const char *name, size_t n,
                   void **data, struct error *error)
{
    struct tensor memory;
    TRY(tensor_take(&memory, arena, type, name, 1, &n, error));
    *data = memory.data;
    return backend->ops->zero(backend, memory.data, tensor_bytes(&memory), error);
}

static status take_tower(struct adapter_tower *tower, unsigned needs, struct arena *arena, struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    struct adapter_statistics *s = &tower->statistics;
    size_t experts = tower->adapters->settings.experts, square = experts * experts;
    if (needs & NEEDS_EARLIER_COUNTS)
        TRY(take(arena, backend, TENSOR_I32, "earlier counts", tower->blocks * experts, (void **)&s->earlier, error));
    if (needs & NEEDS_PAIR_COUNTS)
        TRY(take(arena, backend, TENSOR_I32, "pair counts", tower->blocks * square, (void **)&s->pairs, error));
    if (needs & NEEDS_NEXT_COUNTS)
        TRY(take(arena, backend, TENSOR_I32, "next counts", tower->blocks * square, (void **)&s->next, error));
    if (needs & (NEEDS_PROBES | NEEDS_SIMILARITY))
        TRY(take(arena, backend, TENSOR_F32, "probes", tower->blocks * PROBES * tower->width, (void **)&s->probes,
                 error));
    if (needs & NEEDS_SQUARED_GRADIENTS)
        TRY(take(arena, backend, TENSOR_F32, "squared gradients", tower->parameters->values_count,
                 (void **)&s->squared_gradients, error));
    return OK;
}

status adapters_collect(struct adapters *adapters, unsigned needs, struct arena *arena, struct error *error)
{
    for (int t = 0; t < TOWERS; t++)
        if (adapters_in_tower(adapters, (enum tower)t))
            TRY(take_tower(&adapters->towers[t], needs, arena, error));
    return OK;
}

bool adapters_statistic(const struct adapters *adapters, enum tower which, size_t index, struct statistic *found)
{
    const struct adapter_tower *tower = &adapters->towers[which];
    const struct adapter_statistics *s = &tower->statistics;
    size_t total = tower->blocks * adapters->settings.experts, square = total * adapters->settings.experts;
    const struct statistic all[] = {
        {.name = "pairs", .data = s->pairs, .n = square, .integers = true, .of_task = true},
        {.name = "next", .data = s->next, .n = square, .integers = true, .of_task = true},
        {.name = "earlier", .data = s->earlier, .n = total, .integers = true},
        {.name = "probes", .data = s->probes, .n = tower->blocks * PROBES * tower->width, .of_leader = true},
        {.name = "squared_gradients", .data = s->squared_gradients, .n = tower->parameters->values_count},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].data != NULL && index-- == 0) {
            *found = all[i];
            return true;
        }
    return false;
}

status statistics_begin_task(const struct adapter_tower *tower, struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    size_t n = tower->blocks * tower->adapters->settings.experts, bytes = n * sizeof(int32_t);
    if (tower->statistics.earlier == NULL)
        return OK;
    OWNED int32_t *counts = xmalloc(array_size(2, bytes));
    int32_t *earlier = counts + n;
    TRY(backend->ops->download(backend, counts, tower->banks[0].counts, bytes, error));
    TRY(backend->ops->download(backend, earlier, tower->statistics.earlier, bytes, error));
    for (size_t i = 0; i < n; i++)
        earlier[i] += counts[i];
    return backend->ops->upload(backend, tower->statistics.earlier, earlier, bytes, error);
}

static status count_pairs(const struct adapter_tower *tower, const struct block_context *context,
                          const struct dispatch *first, const struct dispatch *second, int32_t *counts, size_t block,
                          struct error *error)
{
    size_t experts = tower->adapters->settings.experts;
    return context->backend->ops->count_pairs(context->backend,
                                              &(struct count_pairs){.samples = first->samples,
                                                                    .experts = experts,
                                                                    .top_k = first->top_k,
                                                                    .first = first->chosen,
                                                                    .second = second->chosen,
                                                                    .counts = counts + block * experts * experts},
                                              error);
}

/* Rows at equal distances in the list of samples and positions: the text tower's first position is the same for every prompt. Of
 * samples in a multiple of PROBES all rows are first positions, though; of fewer rows than PROBES, the others stay as they were.
 * Where tokens decide, positions past a prompt's end reach neither experts nor probes. */
static status keep_probes(const struct adapter_tower *tower, const struct block_context *context, size_t bank,
                          const struct tensor *input, struct error *error)
{
    struct backend *backend = context->backend;
    struct matrix x = matrix_of(input);
    bool tokens = tower->adapters->settings.routing == ROUTING_PER_TOKEN;
    size_t count = x.rows < PROBES ? x.rows : PROBES;
    struct arena_mark mark = arena_mark(context->arena);
    struct tensor rows;
    TRY(tensor_take(&rows, context->arena, TENSOR_I32, "probe rows", 1, &count, error));
    TRY(backend->ops->arange(backend,
                             &(struct arange){.count = count,
                                              .step = (int32_t)(x.rows / count),
                                              .lengths = tokens ? context->lengths : NULL,
                                              .positions = input->shape[1],
                                              .out = rows.data},
                             error));
    float *probes = tower->statistics.probes + bank * PROBES * tower->width;
    TRY(backend->ops->gather_rows(
        backend, &(struct gather_rows){.x = x, .out = matrix_rows(probes, count, tower->width), .rows = rows.data},
        error));
    arena_release(context->arena, mark);
    return OK;
}

status statistics_see(const struct expert_pass *pass, const struct block_context *context, const struct tensor *input,
                      struct error *error)
{
    const struct adapter_tower *tower = pass->tower;
    const struct adapter_statistics *s = &tower->statistics;
    const struct dispatch *chosen = &pass->routed.dispatch;
    bool first = pass->index == 0 || pass[-1].bank != pass->bank; /* the first block with these experts */
    if (s->pairs != NULL && pass->decider == pass)
        TRY(count_pairs(tower, context, chosen, chosen, s->pairs, pass->bank, error));
    if (s->next != NULL && first && pass->index > 0)
        TRY(count_pairs(tower, context, &pass[-1].routed.dispatch, chosen, s->next, pass->bank - 1, error));
    return s->probes != NULL && first ? keep_probes(tower, context, pass->bank, input, error) : OK;
}

status statistics_square(const struct adapter_tower *tower, const struct step_guard *guard, struct error *error)
{
    struct parameters *group = tower->parameters;
    if (tower->statistics.squared_gradients == NULL)
        return OK;
    return group->backend->ops->multiply(group->backend,
                                         &(struct multiply){.n = group->values_count,
                                                            .a = group->gradients,
                                                            .b = group->gradients,
                                                            .out = tower->statistics.squared_gradients,
                                                            .accumulate = true,
                                                            .guard = guard},
                                         error);
}

/* out [PROBES, d], on the device: the outputs of one of a block's experts on its probes, without the factor `scale`. */
static status expert_output(const struct adapter_tower *tower, size_t block, size_t expert, struct matrix hidden,
                            float *out, struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    size_t m = tower->hidden, d = tower->width;
    const float *parts[EXPERT_PARTS];
    for (int i = 0; i < EXPERT_PARTS; i++)
        parts[i] = parameters_weight(tower->parameters, tower->banks[block].parts[i]).value;
    TRY(backend->ops->gemm(backend,
                           &(struct gemm){.a = matrix_rows(tower->statistics.probes + block * PROBES * d, PROBES, d),
                                          .b = matrix_rows((float *)parts[EXPERT_DOWN] + expert * m * d, m, d),
                                          .transpose_b = true,
                                          .exact = true,
                                          .bias = parts[EXPERT_DOWN_BIAS] + expert * m,
                                          .activation = tower->activation,
                                          .out = hidden},
                           error));
    return backend->ops->gemm(backend,
                              &(struct gemm){.a = hidden,
                                             .b = matrix_rows((float *)parts[EXPERT_UP] + expert * d * m, d, m),
                                             .transpose_b = true,
                                             .exact = true,
                                             .bias = parts[EXPERT_UP_BIAS] + expert * d,
                                             .out = matrix_rows(out, PROBES, d)},
                              error);
}

static status take_outputs(const struct adapter_tower *tower, size_t experts, struct arena *arena,
                           struct tensor *outputs, struct tensor *hidden, struct error *error)
{
    TRY(tensor_take(outputs, arena, TENSOR_F32, "expert outputs", 2, (size_t[]){experts * PROBES, tower->width},
                    error));
    return tensor_take(hidden, arena, TENSOR_F32, "expert hidden units", 2, (size_t[]){PROBES, tower->hidden}, error);
}

/* outputs [1 + sources, n], the merged expert's first. */
static double mean_distance(const float *outputs, size_t sources, size_t n)
{
    double sum = 0, count = 0;
    for (size_t s = 1; s <= sources; s++) {
        double difference = 0, own = 0, theirs = 0;
        for (size_t i = 0; i < n; i++) {
            difference += pow((double)outputs[i] - (double)outputs[s * n + i], 2);
            own += pow((double)outputs[i], 2);
            theirs += pow((double)outputs[s * n + i], 2);
        }
        double lengths = sqrt(own) + sqrt(theirs);
        sum += lengths != 0 ? sqrt(difference) / lengths : 0;
        count += lengths != 0;
    }
    return count > 0 && isfinite(sum) ? sum / count : (double)NAN;
}

static status outputs_of_merge(const struct adapter_tower *tower, const struct merge *merge, struct arena *arena,
                               float *host, struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    struct tensor outputs, hidden;
    TRY(take_outputs(tower, 1 + merge->sources, arena, &outputs, &hidden, error));
    for (size_t i = 0; i <= merge->sources; i++)
        TRY(expert_output(tower, merge->block, (size_t)(i == 0 ? merge->target : merge->source[i - 1]),
                          matrix_of(&hidden), (float *)outputs.data + i * PROBES * tower->width, error));
    return backend->ops->download(backend, host, outputs.data, tensor_bytes(&outputs), error);
}

status statistics_distance(const struct adapter_tower *tower, const struct merge *merge, struct arena *arena,
                           double *distance, struct error *error)
{
    size_t n = PROBES * tower->width;
    OWNED float *outputs = xmalloc(array_size(1 + merge->sources, n * sizeof *outputs));
    struct arena_mark mark = arena_mark(arena);
    status result = outputs_of_merge(tower, merge, arena, outputs, error);
    arena_release(arena, mark);
    if (result == OK)
        *distance = mean_distance(outputs, merge->sources, n);
    return result;
}

static status similarity_of_blocks(const struct adapter_tower *tower, struct arena *arena, float *outputs,
                                   float *similarity, struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    size_t experts = tower->adapters->settings.experts, d = tower->width;
    struct tensor device, hidden;
    TRY(take_outputs(tower, experts, arena, &device, &hidden, error));
    for (size_t b = 0; b < tower->blocks; b++) {
        for (size_t e = 0; e < experts; e++)
            TRY(expert_output(tower, b, e, matrix_of(&hidden), (float *)device.data + e * PROBES * d, error));
        TRY(backend->ops->download(backend, outputs, device.data, tensor_bytes(&device), error));
        merge_similarity(experts, PROBES, d, outputs, similarity + b * experts * experts);
    }
    return OK;
}

status statistics_similarity(const struct adapter_tower *tower, float *similarity, struct error *error)
{
    struct backend *backend = tower->adapters->backend;
    struct arena arena;
    OWNED float *outputs =
        xmalloc(array_size(tower->adapters->settings.experts * PROBES, tower->width * sizeof *outputs));
    status result = backend->ops->arena_create(backend, &arena, 0, "merge", error);
    if (result == OK) {
        result = similarity_of_blocks(tower, &arena, outputs, similarity, error);
        backend->ops->arena_destroy(backend, &arena);
    }
    return result;
}

/* --- Scores of blocks --- */

void layer_scores_create(struct layer_scores *scores, size_t tasks, const size_t blocks[TOWERS])
{
    *scores = (struct layer_scores){.tasks = tasks};
    for (int t = 0; t < TOWERS; t++) {
        scores->blocks[t] = blocks[t];
        scores->values[t] = xcalloc(tasks * scores->blocks[t] + 1, sizeof *scores->values[t]);
    }
}

void layer_scores_free(struct layer_scores *scores)
{
    for (int t = 0; t < TOWERS; t++)
        free(scores->values[t]);
    *scores = (struct layer_scores){0};
}

/* In double precision and in order, so that both backends and any number of threads add alike. */
static status add_squares(const struct parameters *group, size_t index, float *gradients, double *sum,
                          struct error *error)
{
    const struct parameter *p = &group->list[index];
    TRY(group->backend->ops->download(group->backend, gradients, group->gradients + p->offset,
                                      p->size * sizeof *gradients, error));
    for (size_t i = 0; i < p->size; i++)
        *sum += (double)gradients[i] * (double)gradients[i];
    return OK;
}

static status add_bank(const struct adapter_tower *tower, size_t b, float *gradients, double *norm, struct error *error)
{
    const struct expert_bank *bank = &tower->banks[b];
    double sum = 0;
    for (size_t i = 0; i < EXPERT_PARTS; i++) {
        TRY(add_squares(tower->parameters, bank->parts[i], gradients, &sum, error));
        if (tower->adapters->settings.shared_expert)
            TRY(add_squares(tower->parameters, bank->shared[i], gradients, &sum, error));
    }
    *norm = sqrt(sum);
    return isfinite(sum)
               ? OK
               : error_set(error, ERROR_FORMAT, "layer scores: the gradient of the experts of block %zu is not finite",
                           bank->block);
}

status layer_scores_add(struct layer_scores *scores, const struct adapters *adapters, size_t task, double share,
                        struct error *error)
{
    for (int t = 0; t < TOWERS; t++) {
        const struct adapter_tower *tower = &adapters->towers[t];
        size_t largest = 0;
        for (size_t i = 0; i < tower->parameters->count; i++)
            largest = tower->parameters->list[i].size > largest ? tower->parameters->list[i].size : largest;
        OWNED float *gradients = xmalloc(array_size(largest + 1, sizeof *gradients));
        for (size_t b = 0; b < tower->blocks; b++) {
            double norm = 0;
            assert(tower->banks[b].block == b);
            TRY(add_bank(tower, b, gradients, &norm, error));
            scores->values[t][task * tower->blocks + b] += share * norm;
        }
    }
    return OK;
}

double layer_scores_sum(const struct layer_scores *scores, enum tower tower, size_t block)
{
    double sum = 0;
    for (size_t task = 0; task < scores->tasks; task++)
        sum += scores->values[tower][task * scores->blocks[tower] + block];
    return sum;
}

size_t layer_scores_rank(const struct layer_scores *scores, enum tower tower, size_t block)
{
    double own = layer_scores_sum(scores, tower, block);
    size_t rank = 1;
    for (size_t other = 0; other < scores->blocks[tower]; other++) {
        double sum = layer_scores_sum(scores, tower, other);
        rank += sum > own || (sum == own && other < block);
    }
    return rank;
}

void layer_scores_choose(const struct layer_scores *scores, size_t n, struct block_choice *choice)
{
    *choice = (struct block_choice){.rule = BLOCKS_LISTED};
    for (int t = 0; t < TOWERS; t++)
        for (size_t block = 0; block < scores->blocks[t]; block++)
            if (layer_scores_rank(scores, (enum tower)t, block) <= n)
                choice->listed[t] |= (uint64_t)1 << block;
    for (int t = 0; t < TOWERS; t++)
        if (scores->blocks[t] == 0) /* then blocks are written without a tower's name */
            choice->listed[t] = choice->listed[1 - t];
}
