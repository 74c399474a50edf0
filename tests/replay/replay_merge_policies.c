/* fixtures/methods/merge_policies: what experts become under each way to combine them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/merge/combine.h"
#include "core/alloc.h"
#include "core/file.h"
#include "models/files/safetensors.h"
#include "tests/replay/replay_methods.h"

static const char *const part_names[EXPERT_PARTS] = {"down_proj.weight", "down_proj.bias", "up_proj.weight",
                                                     "up_proj.bias"};

struct bank {
    struct method_fixture *f;
    struct safetensors *file, *expect;
    struct expert_shape shape;
    size_t experts, probe_count, n;
    float scale;
    const float *probes;
    float *flat;              /* [E, n] */
    float *squared_gradients; /* [2, n] */
};

static double number(const struct bank *bank, const char *key)
{
    return recorded_number(bank->f->config, key);
}

static double tolerance(const struct bank *bank, const char *key)
{
    return recorded_number(bank->f->tolerances, key);
}

/* The four parts under a prefix, one behind another. */
static void read_flat(const struct bank *bank, const struct safetensors *file, const char *prefix, float *flat)
{
    for (int i = 0; i < EXPERT_PARTS; i++) {
        struct expert_part part = expert_part(bank->shape, i);
        char name[96];
        const float *values;
        snprintf(name, sizeof name, "%s.%s", prefix, part_names[i]);
        values = recorded_floats(file, name, part.size);
        memcpy(flat + part.offset, values, part.size * sizeof *flat);
    }
}

static void open_bank(struct bank *bank)
{
    bank->file = recorded_open(bank->f->folder, "bank.safetensors");
    bank->expect = recorded_open(bank->f->folder, "expect.safetensors");
    bank->shape =
        (struct expert_shape){(size_t)number(bank, "width"), (size_t)number(bank, "bottleneck"), ACTIVATION_RELU};
    bank->experts = (size_t)number(bank, "experts");
    bank->probe_count = (size_t)number(bank, "probes");
    bank->scale = (float)number(bank, "scale");
    bank->n = expert_size(bank->shape);
    bank->flat = xmalloc(bank->experts * bank->n * sizeof *bank->flat);
    bank->squared_gradients = xmalloc(2 * bank->n * sizeof *bank->flat);
    bank->probes = recorded_floats(bank->file, "probes", bank->probe_count * bank->shape.width);
    for (size_t e = 0; e < bank->experts; e++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "expert.%zu", e);
        read_flat(bank, bank->file, prefix, bank->flat + e * bank->n);
    }
    for (size_t e = 0; e < 2; e++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "fisher.%zu", e);
        read_flat(bank, bank->file, prefix, bank->squared_gradients + e * bank->n);
    }
}

static void close_bank(struct bank *bank)
{
    safetensors_close(bank->file);
    safetensors_close(bank->expect);
    free(bank->flat);
    free(bank->squared_gradients);
}

/* Weights of the combined expert, and its outputs on the probes. */
static void compare(struct bank *bank, const char *policy, const float *merged)
{
    char name[96];
    size_t d = bank->shape.width;
    const float *outputs;
    float *expected = xmalloc(bank->n * sizeof *expected), *out = xmalloc(d * sizeof *out),
          *hidden = xmalloc(bank->shape.hidden * sizeof *hidden);
    snprintf(name, sizeof name, "outputs.%s", policy);
    read_flat(bank, bank->expect, policy, expected);
    outputs = recorded_floats(bank->expect, name, bank->probe_count * d);
    report_values(bank->f->report, policy, merged, expected, bank->n, tolerance(bank, "weights"));
    for (size_t p = 0; p < bank->probe_count; p++) {
        expert_forward(bank->shape, merged, bank->scale, bank->probes + p * d, hidden, out);
        report_values(bank->f->report, name, out, outputs + p * d, d, tolerance(bank, "outputs"));
    }
    free(hidden);
    free(out);
    free(expected);
}

static size_t sources_of(const struct bank *bank, const char *policy, int *source)
{
    const json_t *list = json_object_get(json_object_get(bank->f->config, "sources"), policy);
    size_t count = json_array_size(list);
    for (size_t i = 0; i < count && i < MERGE_SOURCES; i++)
        source[i] = (int)json_integer_value(json_array_get(list, i));
    return count;
}

static void set_option(struct options *options, const char *name, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    must(options_find(options_table(options), name) != NULL ? options_set(options, name, text, "config.json", &error)
                                                            : OK);
}

static void combine(struct bank *bank, const struct merge_combiner *combiner, const int *source, size_t count,
                    float *merged)
{
    struct merge_sources sources = {
        .count = count, .shape = bank->shape, .probes = bank->probes, .probe_count = bank->probe_count};
    for (size_t i = 0; i < count; i++) {
        sources.expert[i] = bank->flat + (size_t)source[i] * bank->n;
        sources.squared_gradients[i] = bank->squared_gradients + (size_t)(source[i] % 2) * bank->n;
    }
    struct options *options;
    must(options_create(&options, combiner->options, &error));
    set_option(options, "density", number(bank, "density"));
    set_option(options, "t", number(bank, "slerp_t"));
    set_option(options, "parallel", number(bank, "lerp_above"));
    set_option(options, "floor", number(bank, "fisher_floor"));
    must(combiner->combine(&sources, options, merged, &error));
    options_destroy(options);
}

/* The weights that a combiner gives its sources, summed as the bank sums them. */
static void weigh(struct bank *bank, const struct merge_combiner *combiner, const int *source, size_t count,
                  float *merged)
{
    int32_t counts[1024] = {0};
    struct merge merge = {.sources = count};
    for (size_t e = 0; e < bank->experts && e < 1024; e++)
        counts[e] = (int32_t)json_integer_value(json_array_get(json_object_get(bank->f->config, "counts"), e));
    memcpy(merge.source, source, count * sizeof *source);
    combiner->weigh(&(struct merge_view){.blocks = 1, .experts = bank->experts, .counts = counts}, &merge);
    for (size_t i = 0; i < bank->n; i++) {
        double total = 0;
        for (size_t k = 0; k < count; k++)
            total += (double)merge.weight[k] * (double)bank->flat[(size_t)source[k] * bank->n + i];
        merged[i] = (float)total;
    }
}

static void replay_one(struct bank *bank, const char *policy, const char *combiner_name, float *merged)
{
    const struct merge_combiner *combiner;
    int source[MERGE_SOURCES];
    size_t count = sources_of(bank, policy, source);
    if (count == 0 || count > MERGE_SOURCES)
        must(error_set(&error, ERROR_FORMAT, "config.json: expected sources of %s", policy));
    must(merge_combiner_find(&combiner, combiner_name, &error));
    if (combiner->combine != NULL)
        combine(bank, combiner, source, count, merged);
    else
        weigh(bank, combiner, source, count, merged);
    compare(bank, policy, merged);
}

/* Which experts are most alike, and how alike all are. */
static void replay_similarity(struct bank *bank)
{
    size_t experts = bank->experts, probes = bank->probe_count, d = bank->shape.width;
    const float *expected_outputs, *cosine;
    float *outputs = xmalloc(experts * probes * d * sizeof *outputs),
          *found = xmalloc(experts * experts * sizeof *found), *hidden = xmalloc(bank->shape.hidden * sizeof *hidden);
    int32_t *counts = xcalloc(2 * experts, sizeof *counts);
    for (size_t e = 0; e < experts; e++)
        for (size_t p = 0; p < probes; p++)
            expert_forward(bank->shape, bank->flat + e * bank->n, bank->scale, bank->probes + p * d, hidden,
                           outputs + (e * probes + p) * d);
    merge_similarity(experts, probes, d, outputs, found);
    expected_outputs = recorded_floats(bank->expect, "outputs", experts * probes * d);
    cosine = recorded_floats(bank->expect, "cosine", experts * experts);
    for (size_t i = 0; i < experts * experts; i++)
        if (i / experts != i % experts)
            report_value(bank->f->report, "cosine", (double)found[i], (double)cosine[i], tolerance(bank, "cosine"));
    report_values(bank->f->report, "outputs", outputs, expected_outputs, experts * probes * d,
                  tolerance(bank, "outputs"));
    const struct merge_policy *policy = NULL;
    struct merge_view view = {
        .blocks = 1, .experts = experts, .counts = counts, .frozen = counts + experts, .similarity = found};
    struct merge_list list = {0};
    must(merge_policy_find(&policy, "similar", &error));
    policy->plan(&view, &(struct merge_call){.moment = MERGE_AFTER_STEP}, &list);
    const json_t *pair = json_object_get(bank->f->config, "pair");
    for (size_t i = 0; i < 2; i++)
        report_exact(bank->f->report, "pair", list.merges[0].source[i] == json_integer_value(json_array_get(pair, i)),
                     "found %d and %d", list.merges[0].source[0], list.merges[0].source[1]);
    free(list.merges);
    free(counts);
    free(hidden);
    free(found);
    free(outputs);
}

static void replay_alignment(struct bank *bank)
{
    size_t m = bank->shape.hidden;
    int source[MERGE_SOURCES];
    const float *expected;
    size_t *order = xmalloc(m * sizeof *order);
    float *correlation = xmalloc(m * m * sizeof *correlation);
    sources_of(bank, "aligned", source);
    expected = recorded_floats(bank->expect, "correlation", m * m);
    merge_align(bank->shape, bank->flat + (size_t)source[0] * bank->n, bank->flat + (size_t)source[1] * bank->n,
                bank->probes, bank->probe_count, order, correlation);
    report_values(bank->f->report, "correlation", correlation, expected, m * m, tolerance(bank, "cosine"));
    for (size_t i = 0; i < m; i++)
        report_exact(bank->f->report, "permutation",
                     (json_int_t)order[i] ==
                         json_integer_value(json_array_get(json_object_get(bank->f->config, "permutation"), i)),
                     "unit %zu goes with %zu", i, order[i]);
    free(correlation);
    free(order);
}

void replay_merge_policies(struct method_fixture *fixture)
{
    static const char *const policies[][2] = {
        {"mean", "mean"},   {"weighted", "weighted"}, {"fisher", "fisher"},     {"ties2", "ties"},   {"ties3", "ties"},
        {"slerp", "slerp"}, {"aligned", "aligned"},   {"slerp_edges", "slerp"}, {"similar", "mean"},
    };
    struct bank bank = {.f = fixture};
    open_bank(&bank);
    float *merged = xmalloc(bank.n * sizeof *merged);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
        replay_one(&bank, policies[i][0], policies[i][1], merged);
    replay_similarity(&bank);
    replay_alignment(&bank);
    free(merged);
    close_bank(&bank);
}
