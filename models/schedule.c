#include "models/schedule.h"

#include <math.h>

double schedule_rate(const struct schedule *s, size_t i)
{
    if (i < s->warmup)
        return s->peak * (double)(i + 1) / (double)s->warmup;
    if (i >= s->iterations)
        return 0;
    return s->peak * 0.5 *
           (1.0 + cos(3.14159265358979323846 * (double)(i - s->warmup) / (double)(s->iterations - s->warmup)));
}
