#include "adapters/scores.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

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
    const size_t experts[] = {bank->down_weight, bank->down_bias, bank->up_weight, bank->up_bias},
                 shared[] = {bank->shared.down_weight, bank->shared.down_bias, bank->shared.up_weight,
                             bank->shared.up_bias};
    double sum = 0;
    for (size_t i = 0; i < EXPERT_PARTS; i++) {
        TRY(add_squares(tower->parameters, experts[i], gradients, &sum, error));
        if (tower->adapters->settings.shared_expert)
            TRY(add_squares(tower->parameters, shared[i], gradients, &sum, error));
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
    status result = OK;
    for (int t = 0; result == OK && t < TOWERS; t++) {
        const struct adapter_tower *tower = &adapters->towers[t];
        size_t largest = 0;
        for (size_t i = 0; i < tower->parameters->count; i++)
            largest = tower->parameters->list[i].size > largest ? tower->parameters->list[i].size : largest;
        float *gradients = xmalloc(array_size(largest + 1, sizeof *gradients));
        for (size_t b = 0; result == OK && b < tower->blocks; b++) {
            double norm = 0;
            assert(tower->banks[b].block == b);
            result = add_bank(tower, b, gradients, &norm, error);
            scores->values[t][task * tower->blocks + b] += share * norm;
        }
        free(gradients);
    }
    return result;
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
