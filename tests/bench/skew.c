#include "tests/bench/skew.h"

#include <stdlib.h>

enum { FAVOURED = 2, LOGIT = 100 };

static const struct backend_ops *own;

/* The mean of position 0 over the samples: their rows differ little from it while all weights are random. */
static status mean_row(struct backend *backend, const struct route *o, float *mean, struct error *error)
{
    float *row = malloc(o->width * sizeof *row);
    status result = row != NULL ? OK : error_set(error, ERROR_MEMORY, "skew: no memory for a row");
    for (size_t i = 0; i < o->width; i++)
        mean[i] = 0;
    for (size_t b = 0; result == OK && b < o->batch; b++) {
        const float *x = (const float *)o->x + b * o->positions * o->width;
        result = own->download(backend, row, x, o->width * sizeof *row, error);
        for (size_t i = 0; result == OK && i < o->width; i++)
            mean[i] += row[i] / (float)o->batch;
    }
    free(row);
    return result;
}

/* R [d, E] of the first router: columns of the favoured experts along the mean m, so that m R is LOGIT there. */
static status favour(struct backend *backend, const struct route *o, struct error *error)
{
    float *mean = malloc(o->width * sizeof *mean), *router = calloc(o->width * o->experts, sizeof *router);
    status result = mean != NULL && router != NULL ? mean_row(backend, o, mean, error)
                                                   : error_set(error, ERROR_MEMORY, "skew: no memory for a router");
    if (result == OK) {
        float square = 0;
        for (size_t i = 0; i < o->width; i++)
            square += mean[i] * mean[i];
        for (size_t i = 0; i < o->width; i++)
            for (size_t e = 0; e < FAVOURED && e < o->experts; e++)
                router[i * o->experts + e] = LOGIT * mean[i] / square;
        result = own->upload(backend, (void *)o->routers_value, router, o->width * o->experts * sizeof *router, error);
    }
    free(router);
    free(mean);
    return result;
}

static status skewed_route(struct backend *backend, const struct route *o, struct error *error)
{
    TRY(favour(backend, o, error));
    return own->route(backend, o, error);
}

status skew_routers(struct backend *backend, recorded_body forward, void *context, struct error *error)
{
    own = backend->ops;
    struct backend_ops ops = *own;
    ops.route = skewed_route;
    backend->ops = &ops;
    status result = forward(context, error);
    backend->ops = own;
    return result;
}

status skew_share(const struct adapters *adapters, enum tower tower, double *share, struct error *error)
{
    struct adapter_counts use = adapters_counts(adapters, tower);
    size_t experts = adapters->settings.experts, blocks = use.n / experts;
    int32_t *counts = malloc(2 * use.n * sizeof *counts);
    status result = counts != NULL ? adapters_read_counts_and_frozen(adapters, tower, counts, error)
                                   : error_set(error, ERROR_MEMORY, "skew: no memory for counts");
    *share = 0;
    for (size_t block = 0; result == OK && block < blocks; block++) {
        double all = 0, most = 0, second = 0;
        for (size_t e = 0; e < experts; e++) {
            double n = counts[block * experts + e];
            all += n;
            second = n > most ? most : n > second ? n : second;
            most = n > most ? n : most;
        }
        *share += all > 0 ? (most + second) / all / (double)blocks : 0;
    }
    free(counts);
    return result;
}
