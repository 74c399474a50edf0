#include "tests/bench/skew.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "tests/bench/bench.h"

enum { FAVOURED = 2, LOGIT = 100 };

static const struct backend_ops *own;

/* R [d, E] of the first router: columns of the favoured experts along m, so that m R is LOGIT there. m is the mean of
 * position 0 over the samples: their rows differ little from it while all weights are random. */
static void favour(struct backend *backend, const struct route *o)
{
    size_t d = o->width;
    float *rows = xmalloc(o->batch * d * sizeof *rows), *mean = xcalloc(d, sizeof *mean), square = 0,
          *router = xcalloc(d * o->experts, sizeof *router);
    for (size_t b = 0; b < o->batch; b++)
        must(
            own->download(backend, rows + b * d, (const float *)o->x + b * o->positions * d, d * sizeof *rows, &error));
    for (size_t i = 0; i < d; i++) {
        for (size_t b = 0; b < o->batch; b++)
            mean[i] += rows[b * d + i] / (float)o->batch;
        square += mean[i] * mean[i];
    }
    for (size_t i = 0; i < d; i++)
        for (size_t e = 0; e < FAVOURED && e < o->experts; e++)
            router[i * o->experts + e] = LOGIT * mean[i] / square;
    must(own->upload(backend, (void *)o->routers_value, router, d * o->experts * sizeof *router, &error));
    free(router);
    free(mean);
    free(rows);
}

static status skewed_route(struct backend *backend, const struct route *o, struct error *failure)
{
    favour(backend, o);
    return own->route(backend, o, failure);
}

void skew_routers(struct backend *backend, recorded_body forward, void *context)
{
    own = backend->ops;
    struct backend_ops ops = *own;
    ops.route = skewed_route;
    backend->ops = &ops;
    must(forward(context, &error));
    backend->ops = own;
}

double skew_share(const struct adapters *adapters, enum tower tower)
{
    size_t n = adapters_counts(adapters, tower).n, experts = adapters->settings.experts, blocks = n / experts;
    int32_t *counts = xmalloc(2 * n * sizeof *counts);
    double share = 0;
    must(adapters_read_counts_and_frozen(adapters, tower, counts, &error));
    for (size_t block = 0; block < blocks; block++) {
        double all = 0, most = 0, second = 0;
        for (size_t e = 0; e < experts; e++) {
            double count = counts[block * experts + e];
            all += count;
            second = count > most ? most : count > second ? count : second;
            most = count > most ? count : most;
        }
        share += all > 0 ? (most + second) / all / (double)blocks : 0;
    }
    free(counts);
    return share;
}
