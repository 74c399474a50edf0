#include "models/optimizers/optimizer.h"

#include <math.h>

#include "core/text.h"

#define ENTRY(name) &optimizer_##name,
static const struct optimizer *const optimizers[] = {OPTIMIZERS(ENTRY)};
#undef ENTRY

REGISTRY_AT(optimizer, struct optimizer, optimizers)

double schedule_rate(const struct schedule *s, size_t i)
{
    if (i < s->warmup)
        return s->peak * (double)(i + 1) / (double)s->warmup;
    if (i >= s->iterations)
        return 0;
    return s->peak * 0.5 *
           (1.0 + cos(3.14159265358979323846 * (double)(i - s->warmup) / (double)(s->iterations - s->warmup)));
}
