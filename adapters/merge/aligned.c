/* The mean of two experts after the hidden units of the second were reordered to match those of the first. The order of
 * its hidden units does not change an expert's function (Ainsworth et al., ICLR 2023; Li et al. 2015). */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "adapters/merge/policies.h"
#include "core/alloc.h"
#include "core/scope.h"

/* hidden [m, P], each unit's activations centred and of length 1, or all zero where they are constant. */
static void standard_activations(struct expert_shape s, const float *expert, const float *probes, size_t count,
                                 double *hidden)
{
    OWNED float *unit = xmalloc(array_size(s.hidden, sizeof *unit));
    for (size_t p = 0; p < count; p++) {
        expert_forward(s, expert, 1, probes + p * s.width, unit, NULL);
        for (size_t i = 0; i < s.hidden; i++)
            hidden[i * count + p] = (double)unit[i];
    }
    for (size_t i = 0; i < s.hidden; i++) {
        double *h = hidden + i * count, mean = 0, length = 0;
        bool constant = true;
        for (size_t p = 0; p < count; p++) {
            mean += h[p] / (double)count;
            constant = constant && h[p] == h[0];
        }
        for (size_t p = 0; p < count; p++) {
            h[p] -= mean;
            length += h[p] * h[p];
        }
        for (size_t p = 0; p < count; p++)
            h[p] = constant ? 0 : h[p] / sqrt(length);
    }
}

/* The assignment of n rows to n columns of highest total: the Hungarian method by shortest augmenting paths (Jonker &
 * Volgenant 1987), on costs −gain. Rows and columns count from 1; row 0 and column 0 begin a path. */
struct assignment {
    size_t n;
    const double *gain;
    double *row_price, *column_price, *slack; /* [n + 1] */
    size_t *row_of, *before;                  /* [n + 1] by column */
    bool *used;                               /* [n + 1] */
};

/* Extends the path from the column last reached to the nearest unused one, which it returns. */
static size_t next_column(struct assignment *a, size_t column)
{
    size_t row = a->row_of[column], next = 0;
    double least = DBL_MAX;
    a->used[column] = true;
    for (size_t j = 1; j <= a->n; j++) {
        if (a->used[j])
            continue;
        double reduced = -a->gain[(row - 1) * a->n + j - 1] - a->row_price[row] - a->column_price[j];
        if (reduced < a->slack[j]) {
            a->slack[j] = reduced;
            a->before[j] = column;
        }
        if (a->slack[j] < least) {
            least = a->slack[j];
            next = j;
        }
    }
    for (size_t j = 0; j <= a->n; j++) {
        if (a->used[j]) {
            a->row_price[a->row_of[j]] += least;
            a->column_price[j] -= least;
        } else {
            a->slack[j] -= least;
        }
    }
    return next;
}

static void assign(struct assignment *a)
{
    for (size_t row = 1; row <= a->n; row++) {
        size_t column = 0;
        a->row_of[0] = row;
        for (size_t j = 0; j <= a->n; j++) {
            a->slack[j] = DBL_MAX;
            a->used[j] = false;
        }
        do
            column = next_column(a, column);
        while (a->row_of[column] != 0);
        for (; column != 0; column = a->before[column])
            a->row_of[column] = a->row_of[a->before[column]];
    }
}

static void best_assignment(size_t n, const double *gain, size_t *order)
{
    OWNED double *prices = xcalloc(3 * (n + 1), sizeof *prices);
    OWNED size_t *columns = xcalloc(2 * (n + 1), sizeof *columns);
    OWNED bool *used = xcalloc(n + 1, sizeof *used);
    struct assignment a = {.n = n,
                           .gain = gain,
                           .row_price = prices,
                           .column_price = prices + n + 1,
                           .slack = prices + 2 * (n + 1),
                           .row_of = columns,
                           .before = columns + n + 1,
                           .used = used};
    assign(&a);
    for (size_t j = 1; j <= n; j++)
        order[a.row_of[j] - 1] = j - 1;
}

void merge_align(struct expert_shape s, const float *a, const float *b, const float *probes, size_t count,
                 size_t *order, float *correlation)
{
    size_t m = s.hidden;
    OWNED double *hidden = xmalloc(array_size(array_size(2 * m, count), sizeof *hidden)),
                 *gain = xmalloc(array_size(array_size(m, m), sizeof *gain));
    standard_activations(s, a, probes, count, hidden);
    standard_activations(s, b, probes, count, hidden + m * count);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++) {
            double total = 0;
            for (size_t p = 0; p < count; p++)
                total += hidden[i * count + p] * hidden[(m + j) * count + p];
            gain[i * m + j] = total;
            if (correlation != NULL)
                correlation[i * m + j] = (float)total;
        }
    best_assignment(m, gain, order);
}

/* merged = (a + b with its hidden units in the given order) / 2 */
static void mean_of_permuted(struct expert_shape s, const float *a, const float *b, const size_t *order, float *merged)
{
    struct expert_part down = expert_part(s, 0), down_bias = expert_part(s, 1), up = expert_part(s, 2),
                       up_bias = expert_part(s, 3);
    for (size_t i = 0; i < s.hidden; i++) {
        for (size_t j = 0; j < s.width; j++) {
            size_t into = down.offset + i * s.width + j;
            merged[into] = 0.5f * (a[into] + b[down.offset + order[i] * s.width + j]);
            into = up.offset + j * s.hidden + i;
            merged[into] = 0.5f * (a[into] + b[up.offset + j * s.hidden + order[i]]);
        }
        merged[down_bias.offset + i] = 0.5f * (a[down_bias.offset + i] + b[down_bias.offset + order[i]]);
    }
    for (size_t j = up_bias.offset; j < up_bias.offset + up_bias.size; j++)
        merged[j] = 0.5f * (a[j] + b[j]);
}

static status combine(const struct merge_sources *sources, const struct options *values, float *merged,
                      struct error *error)
{
    OWNED size_t *order = xmalloc(array_size(sources->shape.hidden, sizeof *order));
    merge_align(sources->shape, sources->expert[0], sources->expert[1], sources->probes, sources->probe_count, order,
                NULL);
    mean_of_permuted(sources->shape, sources->expert[0], sources->expert[1], order, merged);
    return OK;
}

const struct merge_combiner combine_aligned = {
    .name = "aligned",
    .source = "Ainsworth et al., ICLR 2023 (Git Re-Basin)",
    .formula = "θ = (a + P b) / 2, P: the permutation of hidden units with the highest total correlation on probes",
    .needs = NEEDS_PROBES,
    .pairs = true,
    .combine = combine};
