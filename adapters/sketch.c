#include "adapters/sketch.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/scope.h"

/* Sums of the experts, [E, SKETCH], and squared distances to their mean, [E]. */
struct sums {
    size_t experts;
    double *values, *distances;
};

/* One parameter of all experts. */
static void add_parameter(struct sums *sums, const float *values, size_t stride, const uint32_t words[4])
{
    double mean = 0, sign = words[1] & 1 ? 1 : -1;
    for (size_t e = 0; e < sums->experts; e++)
        mean += (double)values[e * stride] / (double)sums->experts;
    for (size_t e = 0; e < sums->experts; e++) {
        double value = (double)values[e * stride];
        sums->values[e * SKETCH + words[0] % SKETCH] += sign * value;
        sums->distances[e] += (value - mean) * (value - mean);
    }
}

static status add_part(struct sums *sums, const struct parameters *group, size_t part, uint32_t place,
                       struct error *error)
{
    const struct parameter *p = &group->list[part];
    size_t stride = p->size / sums->experts;
    OWNED float *values = xmalloc(array_size(p->size, sizeof *values));
    struct rng rng = rng_make(0, RNG_DIRECTIONS, place, 0);
    TRY(group->backend->ops->download(group->backend, values, group->values + p->offset, p->size * sizeof *values,
                                      error));
    for (size_t i = 0; i < stride; i++) {
        uint32_t words[4];
        rng_block(&rng, i, words);
        add_parameter(sums, values + i, stride, words);
    }
    return OK;
}

status adapters_sketch(const struct adapters *adapters, enum tower tower, size_t bank, struct expert_sketch *sketches,
                       struct error *error)
{
    const struct adapter_tower *of = &adapters->towers[tower];
    size_t experts = adapters->settings.experts;
    OWNED double *values = xcalloc(experts * SKETCH, sizeof *values), *distances = xcalloc(experts, sizeof *distances);
    struct sums sums = {experts, values, distances};
    for (uint32_t i = 0; i < EXPERT_PARTS; i++)
        TRY(add_part(&sums, of->parameters, of->banks[bank].parts[i], i, error));
    for (size_t e = 0; e < experts; e++) {
        for (size_t i = 0; i < SKETCH; i++)
            sketches[e].values[i] = (float)sums.values[e * SKETCH + i];
        sketches[e].distance = sqrt(sums.distances[e]);
    }
    return OK;
}
