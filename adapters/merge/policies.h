/* All merge policies and all combiners; a new one is a file in this folder and a name here. A combiner makes one
 * expert of several, by their mean or by another published formula. weighted.c is the shortest example of a choice of
 * weights, ties.c of a formula of its own.
 *
 *     const struct merge_combiner *combiner;
 *     TRY(merge_combiner_find(&combiner, "ties", error));
 *     ... combiner->combine(&sources, options, merged, error) ...
 *
 * An expert is one flat vector of its four parts in this order: weight [m, d] and bias [m] of its first layer, weight [d, m]
 * and bias [d] of the second.
 */
#pragma once

#include "adapters/merge.h"

struct expert_shape {
    size_t width, hidden; /* d, m */
    enum activation activation;
};

/* The place of a part in the flat vector. */
struct expert_part {
    size_t offset, size;
};
struct expert_part expert_part(struct expert_shape shape, int part);
size_t expert_size(struct expert_shape shape);

/* hidden [m] = act(W₁ x + b₁) and, unless NULL, out [d] = scale · (W₂ hidden + b₂), on the host. */
void expert_forward(struct expert_shape shape, const float *expert, float scale, const float *x, float *hidden,
                    float *out);

/* The experts to combine, on the host. */
struct merge_sources {
    size_t count;
    struct expert_shape shape;
    const float *expert[MERGE_SOURCES];            /* flat */
    const float *squared_gradients[MERGE_SOURCES]; /* flat; NULL unless the combiner needs them */
    size_t probe_count;
    const float *probes; /* [probe_count, d] inputs of the block; NULL unless the combiner needs them */
};

struct merge_combiner {
    const char *name, *source; /* source: where it is published */
    const char *formula;       /* the merged expert θ of its sources θ_i (two: a, b), in one line */
    unsigned needs;            /* enum merge_needs */
    bool pairs;                /* of two sources, no more */
    const struct option *options;
    /* Either sets merge->weight from the view, and the weighted sum is computed on the device; */
    void (*weigh)(const struct merge_view *view, struct merge *merge);
    /* or computes merged (flat) from the sources. */
    status (*combine)(const struct merge_sources *sources, const struct options *options, float *merged,
                      struct error *error);
};

status merge_combiner_find(const struct merge_combiner **combiner, const char *name, struct error *error);
const struct merge_combiner *merge_combiner_at(size_t index); /* NULL past the last one */

/* The permutation of b's hidden units that correlates best with a's (Hungarian method): unit i of a goes with unit
 * order[i] of b. correlation [m, m], unless NULL, receives Pearson's r of their activations on the probes. */
void merge_align(struct expert_shape shape, const float *a, const float *b, const float *probes, size_t probe_count,
                 size_t *order, float *correlation);

/* similarity [E, E]: the mean over P probes of the cosine of two experts' outputs [E, P, d]; 0 where an output is 0. */
void merge_similarity(size_t experts, size_t probes, size_t width, const float *outputs, float *similarity);

#define MERGE_POLICIES(X) X(none) X(most_used) X(random) X(similar) X(coactivated) X(downstream) X(ewa) X(external)
#define MERGE_COMBINERS(X) X(mean) X(weighted) X(fisher) X(ties) X(slerp) X(aligned) X(repair)

#define DECLARE(name) extern const struct merge_policy policy_##name;
MERGE_POLICIES(DECLARE)
#undef DECLARE
#define DECLARE(name) extern const struct merge_combiner combine_##name;
MERGE_COMBINERS(DECLARE)
#undef DECLARE

/* The arithmetic of TIES merging (Yadav et al., NeurIPS 2023, arXiv 2306.01708), for experts and for whole models.
 *
 *     ties_trim(values, n, density, trimmed);                       // of each model
 *     merged[i] = ties_elect(positive, positives, negative, negatives);
 */

/* trimmed [n]: the ⌊density · n⌋ values of largest magnitude (ties: the first ones), zero elsewhere. Values are finite;
 * trimmed may be values itself. */
void ties_trim(const float *values, size_t n, double density, float *trimmed);

/* The mean of the trimmed values of one entry that have the sign of their sum; 0 where the sum is 0. positive, negative:
 * the sums of those above and below 0, whose numbers are positives and negatives. */
float ties_elect(double positive, size_t positives, double negative, size_t negatives);
