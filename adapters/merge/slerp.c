/* Spherical linear interpolation (Shoemake 1985) of two experts, each part as a vector of its own; lengths are not
 * normalised. Vectors that are (nearly) parallel, or zero, are interpolated linearly. */
#include <math.h>

#include "adapters/merge/policies.h"

static const struct option options[] = {
    OPTION_NUMBER(REAL, "t", 0, 1, "0.5", "position of the interpolation: 0 is the first source, 1 the second"),
    OPTION_NUMBER(REAL, "parallel", 0, 1, "0.9995", "cosine above which the interpolation is linear"),
    {0}};

static void slerp(const float *a, const float *b, size_t n, double t, double parallel, float *out)
{
    double dot = 0, length_a = 0, length_b = 0;
    for (size_t i = 0; i < n; i++) {
        dot += (double)a[i] * (double)b[i];
        length_a += (double)a[i] * (double)a[i];
        length_b += (double)b[i] * (double)b[i];
    }
    double lengths = sqrt(length_a) * sqrt(length_b), cosine = lengths > 0 ? dot / lengths : 1;
    double from = 1 - t, to = t;
    if (fabs(cosine) <= parallel && fabs(cosine) < 1) {
        double angle = acos(cosine);
        from = sin((1 - t) * angle) / sin(angle);
        to = sin(t * angle) / sin(angle);
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(from * (double)a[i] + to * (double)b[i]);
}

static status combine(const struct merge_sources *sources, const struct options *values, float *merged,
                      struct error *error)
{
    for (int i = 0; i < EXPERT_PARTS; i++) {
        struct expert_part part = expert_part(sources->shape, i);
        slerp(sources->expert[0] + part.offset, sources->expert[1] + part.offset, part.size, options_real(values, "t"),
              options_real(values, "parallel"), merged + part.offset);
    }
    return OK;
}

const struct merge_combiner combine_slerp = {
    .name = "slerp",
    .source = "Shoemake, SIGGRAPH 1985",
    .formula =
        "θ = (sin((1 − t) ω) a + sin(t ω) b) / sin ω per part, ω = arccos(cos(a, b)); linear where |cos| > parallel",
    .pairs = true,
    .options = options,
    .combine = combine};
