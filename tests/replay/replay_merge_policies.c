/* fixtures/methods/merge_policies: what experts become under each way to combine them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/policies.h"
#include "tests/replay/replay.h"

enum { EXPERTS_MOST = 1024 };

struct bank {
    struct replay *r;
    struct safetensors *expect;
    struct expert_shape shape;
    size_t experts, probe_count, n;
    float scale;
    const float *probes;
    float *flat;              /* [E, n] */
    float *squared_gradients; /* [2, n] */
};

/* The four parts under a prefix, one behind another. */
static void read_flat(const struct bank *bank, const struct safetensors *file, const char *prefix, float *flat)
{
    static const char *const names[EXPERT_PARTS] = {"down_proj.weight", "down_proj.bias", "up_proj.weight",
                                                    "up_proj.bias"};
    for (int i = 0; i < EXPERT_PARTS; i++) {
        struct expert_part part = expert_part(bank->shape, i);
        memcpy(flat + part.offset, recorded_floats(file, part.size, "%s.%s", prefix, names[i]),
               part.size * sizeof *flat);
    }
}

/* [count, n] of the tensors under prefix.0, prefix.1 … */
static float *read_all(const struct bank *bank, const char *prefix, size_t count)
{
    float *flat = replay_take(bank->r, count * bank->n, sizeof *flat);
    for (size_t e = 0; e < count; e++)
        read_flat(bank, bank->r->data, replay_text(bank->r, "%s.%zu", prefix, e), flat + e * bank->n);
    return flat;
}

static void open_bank(struct bank *bank)
{
    const json_t *config = bank->r->config;
    bank->expect = recorded_open(bank->r, "expect.safetensors");
    bank->shape =
        (struct expert_shape){recorded_size(config, "width"), recorded_size(config, "bottleneck"), ACTIVATION_RELU};
    bank->experts = recorded_size(config, "experts");
    bank->probe_count = recorded_size(config, "probes");
    bank->scale = (float)recorded_number(config, "scale");
    bank->n = expert_size(bank->shape);
    bank->flat = read_all(bank, "expert", bank->experts);
    bank->squared_gradients = read_all(bank, "fisher", 2);
    bank->probes = recorded_floats(bank->r->data, bank->probe_count * bank->shape.width, "probes");
}

/* What an expert answers to the probes [P, D]. */
static void answer(const struct bank *bank, const float *expert, float *outputs)
{
    size_t d = bank->shape.width;
    float *hidden = replay_take(bank->r, bank->shape.hidden, sizeof *hidden);
    for (size_t p = 0; p < bank->probe_count; p++)
        expert_forward(bank->shape, expert, bank->scale, bank->probes + p * d, hidden, outputs + p * d);
}

/* Weights of the combined expert, and its outputs on the probes. */
static void compare(struct bank *bank, const char *policy, const float *merged)
{
    const char *name = replay_text(bank->r, "outputs.%s", policy);
    float *expected = replay_take(bank->r, bank->n, sizeof *expected),
          *outputs = replay_take(bank->r, bank->probe_count * bank->shape.width, sizeof *outputs);
    answer(bank, merged, outputs);
    read_flat(bank, bank->expect, policy, expected);
    report_values(&bank->r->report, policy, merged, expected, bank->n, recorded_tolerance(bank->r, "weights"));
    replay_floats(bank->r, name, outputs, recorded(bank->expect, "%s", name), recorded_tolerance(bank->r, "outputs"));
}

static size_t sources_of(const struct bank *bank, const char *policy, int *source)
{
    const json_t *list = json_object_get(json_object_get(bank->r->config, "sources"), policy);
    size_t count = json_array_size(list);
    if (count == 0 || count > MERGE_SOURCES)
        must(error_set(&error, ERROR_FORMAT, "config.json: expected sources of %s", policy));
    for (size_t i = 0; i < count; i++)
        source[i] = (int)recorded_at(list, i);
    return count;
}

static void combine(struct bank *bank, const struct merge_combiner *combiner, const int *source, size_t count,
                    float *merged)
{
    static const char *const names[][2] = {
        {"density", "density"}, {"t", "slerp_t"}, {"parallel", "lerp_above"}, {"floor", "fisher_floor"}};
    struct merge_sources sources = {
        .count = count, .shape = bank->shape, .probes = bank->probes, .probe_count = bank->probe_count};
    for (size_t i = 0; i < count; i++) {
        sources.expert[i] = bank->flat + (size_t)source[i] * bank->n;
        sources.squared_gradients[i] = bank->squared_gradients + (size_t)(source[i] % 2) * bank->n;
    }
    struct options *options;
    must(options_create(&options, combiner->options, &error));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        recorded_option(options, combiner->options, names[i][0], recorded_number(bank->r->config, names[i][1]));
    must(combiner->combine(&sources, options, merged, &error));
    options_destroy(options);
}

/* The weights that a combiner gives its sources, summed as the bank sums them. */
static void weigh(struct bank *bank, const struct merge_combiner *combiner, const int *source, size_t count,
                  float *merged)
{
    int32_t counts[EXPERTS_MOST] = {0};
    struct merge merge = {.sources = count};
    for (size_t e = 0; e < bank->experts && e < EXPERTS_MOST; e++)
        counts[e] = (int32_t)recorded_at(json_object_get(bank->r->config, "counts"), e);
    memcpy(merge.source, source, count * sizeof *source);
    combiner->weigh(&(struct merge_view){.blocks = 1, .experts = bank->experts, .counts = counts}, &merge);
    for (size_t i = 0; i < bank->n; i++) {
        double total = 0;
        for (size_t k = 0; k < count; k++)
            total += (double)merge.weight[k] * (double)bank->flat[(size_t)source[k] * bank->n + i];
        merged[i] = (float)total;
    }
}

static void replay_one(struct bank *bank, const char *policy, const char *combiner_name)
{
    const struct merge_combiner *combiner;
    int source[MERGE_SOURCES];
    size_t count = sources_of(bank, policy, source);
    float *merged = replay_take(bank->r, bank->n, sizeof *merged);
    must(merge_combiner_find(&combiner, combiner_name, &error));
    (combiner->combine != NULL ? combine : weigh)(bank, combiner, source, count, merged);
    compare(bank, policy, merged);
}

/* Which experts are most alike, and how alike all are. */
static void replay_similarity(struct bank *bank)
{
    size_t experts = bank->experts, answers = bank->probe_count * bank->shape.width;
    const struct safetensor *cosine = recorded(bank->expect, "cosine");
    float *outputs = replay_take(bank->r, experts * answers, sizeof *outputs),
          *found = replay_take(bank->r, experts * experts, sizeof *found);
    int32_t *counts = replay_take(bank->r, 2 * experts, sizeof *counts);
    for (size_t e = 0; e < experts; e++)
        answer(bank, bank->flat + e * bank->n, outputs + e * answers);
    merge_similarity(experts, bank->probe_count, bank->shape.width, outputs, found);
    for (size_t i = 0; i < experts * experts; i++)
        if (i / experts != i % experts)
            report_value(&bank->r->report, "cosine", (double)found[i], recorded_value(cosine, i),
                         recorded_tolerance(bank->r, "cosine"));
    replay_floats(bank->r, "outputs", outputs, recorded(bank->expect, "outputs"),
                  recorded_tolerance(bank->r, "outputs"));
    const struct merge_policy *policy = NULL;
    struct merge_view view = {
        .blocks = 1, .experts = experts, .counts = counts, .frozen = counts + experts, .similarity = found};
    struct merge_list list = {0};
    must(merge_policy_find(&policy, "similar", &error));
    policy->plan(&view, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &list);
    for (size_t i = 0; i < 2; i++)
        report_exact(&bank->r->report, "pair",
                     (size_t)list.merges[0].source[i] == recorded_at(json_object_get(bank->r->config, "pair"), i),
                     "found %d and %d", list.merges[0].source[0], list.merges[0].source[1]);
    free(list.merges);
}

static void replay_alignment(struct bank *bank)
{
    size_t m = bank->shape.hidden, order[EXPERTS_MOST];
    int source[MERGE_SOURCES];
    float *correlation = replay_take(bank->r, m * m, sizeof *correlation);
    must(m <= EXPERTS_MOST ? OK : error_set(&error, ERROR_FORMAT, "%zu hidden units", m));
    sources_of(bank, "aligned", source);
    merge_align(bank->shape, bank->flat + (size_t)source[0] * bank->n, bank->flat + (size_t)source[1] * bank->n,
                bank->probes, bank->probe_count, order, correlation);
    replay_floats(bank->r, "correlation", correlation, recorded(bank->expect, "correlation"),
                  recorded_tolerance(bank->r, "cosine"));
    for (size_t i = 0; i < m; i++)
        report_exact(&bank->r->report, "permutation",
                     order[i] == recorded_at(json_object_get(bank->r->config, "permutation"), i),
                     "unit %zu goes with %zu", i, order[i]);
}

void replay_merge_policies(struct replay *r)
{
    static const char *const policies[][2] = {
        {"mean", "mean"},   {"weighted", "weighted"}, {"fisher", "fisher"},     {"ties2", "ties"},   {"ties3", "ties"},
        {"slerp", "slerp"}, {"aligned", "aligned"},   {"slerp_edges", "slerp"}, {"similar", "mean"},
    };
    struct bank bank = {.r = r};
    open_bank(&bank);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        replay_one(&bank, policies[i][0], policies[i][1]);
    replay_similarity(&bank);
    replay_alignment(&bank);
    safetensors_close(bank.expect);
}
