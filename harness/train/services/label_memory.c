#include "harness/train/services/label_memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/train/services/host_step.h"

/* --- Clusters --- */

/* k-means is the same with shares of 0 and 1 by the distance alone. */
struct clusters {
    const double *rows;
    size_t n, width, count;
    bool soft;
    double *means;
    struct gaussian *gaussians; /* [count] */
    double *shares;             /* [n, count] of the rows in the clusters */
};

static double gap(const struct clusters *c, size_t row, size_t cluster)
{
    const double *a = c->rows + row * c->width, *b = c->means + cluster * c->width;
    double sum = 0;
    for (size_t k = 0; k < c->width; k++)
        sum += (a[k] - b[k]) * (a[k] - b[k]);
    return sum;
}

/* Sets the shares; returns the mean log-likelihood of a row, or minus its mean squared distance. */
static double expect(struct clusters *c)
{
    double total = 0;
    for (size_t i = 0; i < c->n; i++) {
        double *row = c->shares + i * c->count, sum = 0;
        size_t best = 0;
        for (size_t j = 0; j < c->count; j++) {
            double v = c->gaussians[j].variance, d = gap(c, i, j);
            row[j] = c->soft ? log(c->gaussians[j].weight) - ((double)c->width * log(6.283185307179586 * v) + d / v) / 2
                             : -d;
            best = row[j] > row[best] ? j : best;
        }
        double highest = row[best];
        for (size_t j = 0; j < c->count; j++) {
            row[j] = c->soft ? exp(row[j] - highest) : j == best;
            sum += row[j];
        }
        for (size_t j = 0; j < c->count; j++)
            row[j] /= sum;
        total += highest + log(sum);
    }
    return total / (double)c->n;
}

/* A cluster without rows stays where it is. */
static void maximise(struct clusters *c)
{
    for (size_t j = 0; j < c->count; j++) {
        double members = 0, spread = 0, *mean = c->means + j * c->width;
        for (size_t i = 0; i < c->n; i++)
            members += c->shares[i * c->count + j];
        for (size_t k = 0; members > 0 && k < c->width; k++) {
            double sum = 0;
            for (size_t i = 0; i < c->n; i++)
                sum += c->shares[i * c->count + j] * c->rows[i * c->width + k];
            mean[k] = sum / members;
        }
        for (size_t i = 0; i < c->n; i++)
            spread += c->shares[i * c->count + j] * gap(c, i, j);
        c->gaussians[j] =
            (struct gaussian){members / (double)c->n, (members > 0 ? spread / (members * (double)c->width) : 0) + 1e-6};
    }
}

/* The last value of expect. */
static double iterate(struct clusters *c, bool soft)
{
    enum { SOFT_ROUNDS = 100, HARD_ROUNDS = 300 };
    double before = -INFINITY, now = before;
    c->soft = soft;
    for (size_t round = 0; round < (soft ? SOFT_ROUNDS : HARD_ROUNDS); round++) {
        now = expect(c);
        maximise(c);
        if (soft ? fabs(now - before) < 1e-3 : now <= before)
            break;
        before = now;
    }
    return now;
}

/* The next centre is a row, drawn by its squared distance to the nearest one so far. */
static double k_means(struct clusters *c, struct rng rng)
{
    OWNED double *nearest = xmalloc(array_size(c->n, sizeof *nearest));
    for (size_t j = 0; j < c->count; j++) {
        double total = 0, left = (double)rng_uniform(&rng, j);
        size_t pick = 0;
        for (size_t i = 0; i < c->n; i++) {
            double d = j > 0 ? gap(c, i, j - 1) : 1;
            nearest[i] = j < 2 || d < nearest[i] ? d : nearest[i];
            total += nearest[i];
        }
        for (left *= total; pick + 1 < c->n && left >= nearest[pick]; pick++)
            left -= nearest[pick];
        memcpy(c->means + j * c->width, c->rows + pick * c->width, c->width * sizeof *c->means);
    }
    return iterate(c, false);
}

static struct clusters start(const double *rows, size_t n, size_t width, size_t count)
{
    return (struct clusters){.rows = rows,
                             .n = n,
                             .width = width,
                             .count = count,
                             .means = xmalloc(array_size(count, width * sizeof(double))),
                             .gaussians = xmalloc(array_size(count, sizeof(struct gaussian))),
                             .shares = xmalloc(array_size(n, count * sizeof(double)))};
}

static void finish(struct clusters *c)
{
    free(c->means);
    free(c->gaussians);
    free(c->shares);
}

void clusters_means(const double *rows, size_t n, size_t width, size_t count, struct rng rng, double *means)
{
    enum { TRIES = 10 };
    struct clusters c = start(rows, n, width, count);
    double best = -INFINITY;
    for (size_t t = 0; t < TRIES; t++, rng.step++) {
        double found = k_means(&c, rng);
        if (found > best)
            memcpy(means, c.means, count * width * sizeof *means);
        best = found > best ? found : best;
    }
    finish(&c);
}

void clusters_gaussians(const double *rows, size_t n, size_t width, size_t count, struct rng rng,
                        struct gaussian *gaussians, double *means)
{
    struct clusters c = start(rows, n, width, count);
    k_means(&c, rng);
    iterate(&c, true);
    memcpy(gaussians, c.gaussians, count * sizeof *gaussians);
    memcpy(means, c.means, count * width * sizeof *means);
    finish(&c);
}

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

double label_memory_loss(const struct label_memory *m, struct label_batch *b, size_t first, double *gradient)
{
    size_t n = b->n, count = m->vectors.count;
    double *affinities = b->work, *turned = affinities + n * count, *across = turned + (count - first) * n;
    label_memory_scores(m, b->x, n, affinities, b->scores);
    double loss = host_cross_entropy(b->scores, n, m->classes, b->labels, b->weights);
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
    double top = 0.3 * (double)cycle->steps - 1, at = (double)step, end = (double)cycle->steps - 1;
    bool rises = at <= top;
    double share = rises ? at / top : (at - top) / (end - top);
    const struct host_adam adam = {.rate = rises ? along_cosine(cycle->peak / 25, cycle->peak, share)
                                                 : along_cosine(cycle->peak, cycle->peak / 25e4, share),
                                   .decay = cycle->decay,
                                   .beta1 = rises ? along_cosine(0.95, 0.85, share) : along_cosine(0.85, 0.95, share)};
    host_adam(m->vectors.values + first * m->width, (m->vectors.count - first) * m->width, gradient, moments, &adam,
              step);
}
