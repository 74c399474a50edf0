#include "harness/train/services/clusters.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

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
    double *nearest = xmalloc(array_size(c->n, sizeof *nearest));
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
    free(nearest);
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
