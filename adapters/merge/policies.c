/* Policies, combiners, schedules and freeze policies by name, and what those of a family share. */
#include "adapters/merge/policies.h"

#include <math.h>

#include "core/alloc.h"
#include "core/text.h"

#define ENTRY(name) &policy_##name,
static const struct merge_policy *const policies[] = {MERGE_POLICIES(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(merge_policy, struct merge_policy, policies, "suite", "merge policy")

#define ENTRY(name) &combine_##name,
static const struct merge_combiner *const combiners[] = {MERGE_COMBINERS(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(merge_combiner, struct merge_combiner, combiners, "suite", "way to combine experts")

#define ENTRY(name) &schedule_##name,
static const struct merge_schedule *const schedules[] = {MERGE_SCHEDULES(ENTRY)};
#undef ENTRY

REGISTRY_AT(merge_schedule, struct merge_schedule, schedules)

#define ENTRY(name) &freeze_##name,
static const struct freeze_policy *const freezes[] = {FREEZE_POLICIES(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(freeze_policy, struct freeze_policy, freezes, "suite", "freeze policy")

/* --- Policies --- */

bool merge_policy_plans(const struct merge_policy *policy)
{
    return policy->plan != NULL || policy->ask != NULL;
}

void merge_list_add(struct merge_list *list, const struct merge *merge)
{
    GROW(list->merges, list->count);
    list->merges[list->count++] = *merge;
}

void highest_counts(const int32_t *counts, size_t experts, size_t n, int *highest)
{
    for (size_t i = 0; i < n; i++) {
        highest[i] = -1;
        for (size_t e = 0; e < experts; e++) {
            bool taken = false;
            for (size_t j = 0; j < i; j++)
                taken = taken || highest[j] == (int)e;
            if (!taken && (highest[i] < 0 || counts[e] > counts[highest[i]]))
                highest[i] = (int)e;
        }
    }
}

static bool is_source(const struct merge *merge, size_t expert)
{
    for (size_t i = 0; i < merge->sources; i++)
        if (merge->source[i] == (int)expert)
            return true;
    return false;
}

static void onto_least_used(const struct merge_view *view, enum merge_target target, struct merge *merge)
{
    const int32_t *counts = view->counts + merge->block * view->experts,
                  *frozen = view->frozen + merge->block * view->experts,
                  *earlier = target == TARGET_LEAST_USED_EVER ? view->earlier + merge->block * view->experts : NULL;
    int64_t least = INT64_MAX;
    merge->target = -1;
    for (size_t e = 0; e < view->experts; e++) {
        int64_t count = counts[e] + (earlier != NULL ? (int64_t)earlier[e] : 0);
        if ((frozen[e] && target != TARGET_LEAST_USED_ANY) || count >= least)
            continue;
        least = count;
        merge->target = (int)e;
    }
    merge->skip = merge->target < 0 ? MERGE_NO_FREE_EXPERT : MERGE_DONE;
    if (merge->target >= 0 && is_source(merge, (size_t)merge->target))
        merge->skip = MERGE_TARGET_IS_SOURCE;
}

/* Draws an expert that is neither a source so far nor set in `frozen` (NULL: none is); −1: none is left. */
static int draw(const struct merge_view *view, const struct rng *rng, const struct merge *merge, const int32_t *frozen)
{
    uint64_t index = ((uint64_t)view->tower << 32 | merge->block) * 4 + merge->sources;
    uint32_t left = 0;
    for (size_t e = 0; e < view->experts; e++)
        left += !is_source(merge, e) && (frozen == NULL || !frozen[e]);
    if (left == 0)
        return -1;
    uint32_t number = rng_below(rng, index, left);
    for (size_t e = 0;; e++)
        if (!is_source(merge, e) && (frozen == NULL || !frozen[e]) && number-- == 0)
            return (int)e;
}

int merge_draw_source(const struct merge_view *view, const struct rng *rng, const struct merge *merge)
{
    return draw(view, rng, merge, NULL);
}

void merge_onto_random_free(const struct merge_view *view, const struct rng *rng, struct merge *merge)
{
    merge->target = draw(view, rng, merge, view->frozen + merge->block * view->experts);
    merge->skip = merge->target < 0 ? MERGE_NO_FREE_EXPERT : MERGE_DONE;
}

void merge_choose_target(const struct merge_view *view, const struct merge_call *call, struct merge *merge)
{
    int target = call->options != NULL ? options_choice(call->options, "target") : TARGET_LEAST_USED;
    if (target == TARGET_RANDOM_FREE)
        merge_onto_random_free(view, &call->rng, merge);
    else
        onto_least_used(view, (enum merge_target)target, merge);
}

/* Finds the best pair; false: no pair has a score above `above`. */
static bool best_pair(const struct merge_view *view, size_t block, merge_score *score, double above, int pair[2])
{
    bool found = false;
    for (size_t e = 0; e < view->experts; e++)
        for (size_t f = e + 1; f < view->experts; f++) {
            double value = score(view, block, e, f);
            if (value <= above)
                continue;
            above = value;
            pair[0] = (int)e;
            pair[1] = (int)f;
            found = true;
        }
    return found;
}

void merge_best_pairs(const struct merge_view *view, const struct merge_call *call, merge_score *score, double above,
                      struct merge_list *list)
{
    for (size_t block = 0; block < view->blocks; block++) {
        struct merge merge = {.block = block, .sources = 2};
        if (!best_pair(view, block, score, above, merge.source))
            continue;
        merge_choose_target(view, call, &merge);
        merge_list_add(list, &merge);
    }
}

const char *merge_skip_name(enum merge_skip skip)
{
    static const char *const names[] = {"", "target_is_source", "no_free_expert", "declined"};
    return names[skip];
}

/* --- Combiners --- */

struct expert_part expert_part(struct expert_shape s, int part)
{
    const size_t sizes[EXPERT_PARTS] = {s.hidden * s.width, s.hidden, s.width * s.hidden, s.width};
    struct expert_part found = {0, sizes[part]};
    for (int i = 0; i < part; i++)
        found.offset += sizes[i];
    return found;
}

size_t expert_size(struct expert_shape shape)
{
    struct expert_part last = expert_part(shape, EXPERT_PARTS - 1);
    return last.offset + last.size;
}

/* out [rows] = matrix [rows, columns] · x + bias */
static void affine(size_t rows, size_t columns, const float *matrix, const float *bias, const float *x, float *out)
{
    for (size_t i = 0; i < rows; i++) {
        double total = (double)bias[i];
        for (size_t j = 0; j < columns; j++)
            total += (double)matrix[i * columns + j] * (double)x[j];
        out[i] = (float)total;
    }
}

static float activated(enum activation activation, float x)
{
    switch (activation) {
    case ACTIVATION_RELU:
        return fmaxf(x, 0);
    case ACTIVATION_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case ACTIVATION_GELU_TANH:
        return x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
    case ACTIVATION_QUICK_GELU:
        return x / (1.0f + expf(-1.702f * x));
    default:
        return x;
    }
}

void expert_forward(struct expert_shape s, const float *expert, float scale, const float *x, float *hidden, float *out)
{
    const float *parts[EXPERT_PARTS];
    for (int i = 0; i < EXPERT_PARTS; i++)
        parts[i] = expert + expert_part(s, i).offset;
    affine(s.hidden, s.width, parts[0], parts[1], x, hidden);
    for (size_t i = 0; i < s.hidden; i++)
        hidden[i] = activated(s.activation, hidden[i]);
    if (out == NULL)
        return;
    affine(s.width, s.hidden, parts[2], parts[3], hidden, out);
    for (size_t i = 0; i < s.width; i++)
        out[i] *= scale;
}

static double dot(const float *a, const float *b, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)a[i] * (double)b[i];
    return total;
}

void merge_similarity(size_t experts, size_t probes, size_t width, const float *outputs, float *similarity)
{
    for (size_t e = 0; e < experts; e++)
        for (size_t f = e; f < experts; f++) {
            double total = 0;
            for (size_t p = 0; p < probes; p++) {
                const float *a = outputs + (e * probes + p) * width, *b = outputs + (f * probes + p) * width;
                double lengths = sqrt(dot(a, a, width)) * sqrt(dot(b, b, width));
                total += lengths > 0 ? dot(a, b, width) / lengths : 0;
            }
            similarity[e * experts + f] = similarity[f * experts + e] = (float)(total / (double)probes);
        }
}
