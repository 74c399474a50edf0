#include "harness/train/services/label_memory.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

/* --- What is kept --- */

/* Room for `count` rows more; returns the first of them. */
static double *extend(struct label_rows *rows, size_t width, size_t count, size_t class)
{
    rows->values = xrealloc(rows->values, array_size(rows->count + count + 1, width * sizeof *rows->values));
    rows->owners = xrealloc(rows->owners, array_size(rows->count + count + 1, sizeof *rows->owners));
    for (size_t i = 0; i < count; i++)
        rows->owners[rows->count++] = (int32_t) class;
    return rows->values + (rows->count - count) * width;
}

void label_memory_add(struct label_memory *m, const double *rows, size_t n, size_t vectors, struct rng rng)
{
    size_t count = n < vectors ? n : vectors;
    double *centres = extend(&m->vectors, m->width, count, m->classes++);
    if (count > 0)
        clusters_means(rows, n, m->width, count, rng, centres);
}

void label_memory_fit(struct label_memory *m, size_t class, const double *rows, size_t n, size_t gaussians,
                      struct rng rng)
{
    size_t count = n < gaussians ? n : gaussians, before = m->means.count;
    double *means = extend(&m->means, m->width, count, class);
    m->gaussians = xrealloc(m->gaussians, array_size(m->means.count + 1, sizeof *m->gaussians));
    if (count > 0)
        clusters_gaussians(rows, n, m->width, count, rng, m->gaussians + before, means);
}

void label_memory_cut(struct label_memory *m, size_t classes)
{
    while (m->vectors.count > 0 && (size_t)m->vectors.owners[m->vectors.count - 1] >= classes)
        m->vectors.count--;
    m->classes = classes < m->classes ? classes : m->classes;
}

static void free_rows(struct label_rows *rows)
{
    free(rows->values);
    free(rows->owners);
    *rows = (struct label_rows){0};
}

void label_memory_free(struct label_memory *m)
{
    free_rows(&m->vectors);
    free_rows(&m->means);
    free(m->gaussians);
    m->gaussians = NULL;
    m->classes = 0;
}

status label_memory_keep(struct label_memory *m, const struct serializer *serializer, struct error *error)
{
    int64_t counts[] = {(int64_t)m->classes, (int64_t)m->vectors.count, (int64_t)m->means.count};
    TRY(serializer_host(serializer, "lada.counts", SAFETENSOR_I64, 3, counts, error));
    if (counts[0] == 0)
        return OK;
    if (!serializer->saving) {
        label_memory_free(m);
        m->classes = (size_t)counts[0];
        extend(&m->vectors, m->width, (size_t)counts[1], 0);
        extend(&m->means, m->width, (size_t)counts[2], 0);
        m->gaussians = xmalloc(array_size((size_t)counts[2] + 1, sizeof *m->gaussians));
    }
    const struct label_rows *v = &m->vectors, *g = &m->means;
    TRY(serializer_host(serializer, "lada.vectors", SAFETENSOR_F64, v->count * m->width, v->values, error));
    TRY(serializer_host(serializer, "lada.owners", SAFETENSOR_I32, v->count, v->owners, error));
    TRY(serializer_host(serializer, "lada.means", SAFETENSOR_F64, g->count * m->width, g->values, error));
    TRY(serializer_host(serializer, "lada.mean_owners", SAFETENSOR_I32, g->count, g->owners, error));
    return serializer_host(serializer, "lada.gaussians", SAFETENSOR_F64, 2 * g->count, m->gaussians, error);
}

void label_memory_draw(const struct label_memory *m, struct rng rng, double *x)
{
    for (size_t i = 0; i < m->means.count * m->width; i++)
        x[i] = m->means.values[i] + sqrt(m->gaussians[i / m->width].variance) * (double)rng_normal(&rng, i);
}

/* --- Scores --- */

static void affinity(const void *context, double *values, size_t count)
{
    const struct label_memory *m = context;
    for (size_t i = 0; i < count; i++)
        values[i] = exp(-m->sharpness * (1 - values[i]));
}

void label_memory_scores(const struct label_memory *m, const double *x, size_t n, double *affinities, double *scores)
{
    size_t count = m->vectors.count;
    linear_multiply(m->pool, &(struct linear_product){.rows = n,
                                                      .columns = count,
                                                      .inner = m->width,
                                                      .a = x,
                                                      .b = m->vectors.values,
                                                      .out = affinities,
                                                      .map = affinity,
                                                      .context = m});
    for (size_t i = 0; i < n; i++)
        for (size_t v = 0; v < count; v++)
            scores[i * m->classes + (size_t)m->vectors.owners[v]] += m->weight * affinities[i * count + v];
}

/* --- Training --- */

/* The loss, and in place of the scores its gradient. */
static double cross_entropy(const struct label_batch *b, size_t classes)
{
    double loss = 0;
    for (size_t i = 0; i < b->n; i++) {
        double *row = b->scores + i * classes, share = b->weights[i] / (double)b->n, highest = row[0], sum = 0;
        size_t label = (size_t)b->labels[i];
        for (size_t c = 1; c < classes; c++)
            highest = row[c] > highest ? row[c] : highest;
        for (size_t c = 0; c < classes; c++)
            sum += exp(row[c] - highest);
        loss += share * (highest + log(sum) - row[label]);
        for (size_t c = 0; c < classes; c++)
            row[c] = share * (exp(row[c] - highest) / sum - (c == label));
    }
    return loss;
}

double label_memory_loss(const struct label_memory *m, struct label_batch *b, size_t first, double *gradient)
{
    size_t n = b->n, count = m->vectors.count;
    double *affinities = b->work, *turned = affinities + n * count, *across = turned + (count - first) * n;
    label_memory_scores(m, b->x, n, affinities, b->scores);
    double loss = cross_entropy(b, m->classes);
    for (size_t v = first; v < count; v++)
        for (size_t i = 0; i < n; i++)
            turned[(v - first) * n + i] = m->weight * m->sharpness * affinities[i * count + v] *
                                          b->scores[i * m->classes + (size_t)m->vectors.owners[v]];
    for (size_t k = 0; k < m->width; k++)
        for (size_t i = 0; i < n; i++)
            across[k * n + i] = b->x[i * m->width + k];
    linear_multiply(
        m->pool,
        &(struct linear_product){
            .rows = count - first, .columns = m->width, .inner = n, .a = turned, .b = across, .out = gradient});
    return loss;
}

static double along_cosine(double from, double to, double share)
{
    return to + (from - to) / 2 * (1 + cos(3.141592653589793 * share));
}

void label_memory_step(struct label_memory *m, size_t first, const struct one_cycle *cycle, size_t step,
                       const double *gradient, double *moments)
{
    static const double beta2 = 0.999, epsilon = 1e-8;
    double top = 0.3 * (double)cycle->steps - 1, at = (double)step, end = (double)cycle->steps - 1;
    bool rises = at <= top;
    double share = rises ? at / top : (at - top) / (end - top),
           rate = rises ? along_cosine(cycle->peak / 25, cycle->peak, share)
                        : along_cosine(cycle->peak, cycle->peak / 25e4, share),
           beta1 = rises ? along_cosine(0.95, 0.85, share) : along_cosine(0.85, 0.95, share),
           scale1 = 1 - pow(beta1, at + 1), scale2 = 1 - pow(beta2, at + 1);
    size_t n = (m->vectors.count - first) * m->width;
    double *values = m->vectors.values + first * m->width, *mean = moments, *square = moments + n;
    for (size_t i = 0; i < n; i++) {
        mean[i] = beta1 * mean[i] + (1 - beta1) * gradient[i];
        square[i] = beta2 * square[i] + (1 - beta2) * gradient[i] * gradient[i];
        values[i] =
            (1 - rate * cycle->decay) * values[i] - rate / scale1 * mean[i] / (sqrt(square[i] / scale2) + epsilon);
    }
}
