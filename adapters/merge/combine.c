#include "adapters/merge/combine.h"

#include <math.h>

#include "adapters/merge/policies.h"
#include "core/text.h"

#define ENTRY(name) &combine_##name,
static const struct merge_combiner *const combiners[] = {MERGE_COMBINERS(ENTRY)};
#undef ENTRY

REGISTRY_LOOKUPS(merge_combiner, struct merge_combiner, combiners, "suite", "way to combine experts")

struct expert_part expert_part(struct expert_shape s, int part)
{
    const size_t sizes[EXPERT_PARTS] = {s.hidden * s.width, s.hidden, s.width * s.hidden, s.width};
    struct expert_part found = {0, sizes[part]};
    for (int i = 0; i < part; i++)
        found.offset += sizes[i];
    return found;
}

size_t expert_size(struct expert_shape shape)
{
    struct expert_part last = expert_part(shape, EXPERT_PARTS - 1);
    return last.offset + last.size;
}

/* out [rows] = matrix [rows, columns] · x + bias */
static void affine(size_t rows, size_t columns, const float *matrix, const float *bias, const float *x, float *out)
{
    for (size_t i = 0; i < rows; i++) {
        double total = (double)bias[i];
        for (size_t j = 0; j < columns; j++)
            total += (double)matrix[i * columns + j] * (double)x[j];
        out[i] = (float)total;
    }
}

static float activated(enum activation activation, float x)
{
    switch (activation) {
    case ACTIVATION_RELU:
        return fmaxf(x, 0);
    case ACTIVATION_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case ACTIVATION_GELU_TANH:
        return x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
    case ACTIVATION_QUICK_GELU:
        return x / (1.0f + expf(-1.702f * x));
    default:
        return x;
    }
}

void expert_forward(struct expert_shape s, const float *expert, float scale, const float *x, float *hidden, float *out)
{
    const float *parts[EXPERT_PARTS];
    for (int i = 0; i < EXPERT_PARTS; i++)
        parts[i] = expert + expert_part(s, i).offset;
    affine(s.hidden, s.width, parts[0], parts[1], x, hidden);
    for (size_t i = 0; i < s.hidden; i++)
        hidden[i] = activated(s.activation, hidden[i]);
    if (out == NULL)
        return;
    affine(s.width, s.hidden, parts[2], parts[3], hidden, out);
    for (size_t i = 0; i < s.width; i++)
        out[i] *= scale;
}

static double dot(const float *a, const float *b, size_t n)
{
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)a[i] * (double)b[i];
    return total;
}

void merge_similarity(size_t experts, size_t probes, size_t width, const float *outputs, float *similarity)
{
    for (size_t e = 0; e < experts; e++)
        for (size_t f = e; f < experts; f++) {
            double total = 0;
            for (size_t p = 0; p < probes; p++) {
                const float *a = outputs + (e * probes + p) * width, *b = outputs + (f * probes + p) * width;
                double lengths = sqrt(dot(a, a, width)) * sqrt(dot(b, b, width));
                total += lengths > 0 ? dot(a, b, width) / lengths : 0;
            }
            similarity[e * experts + f] = similarity[f * experts + e] = (float)(total / (double)probes);
        }
}
