#include "results/statistics/axes.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/linear.h"

enum { AXES = 2 };

bool axes_find(const float *points, size_t n, size_t width, double *axes)
{
    OWNED double *centred = xmalloc(array_size(n, width * sizeof *centred));
    double total = 0;
    SCOPED(svd_free) struct svd svd = {0};
    struct error ignored;
    memset(axes, 0, AXES_SIZE(width) * sizeof *axes);
    for (size_t i = 0; i < n * width; i++)
        axes[i % width] += (double)points[i] / (double)n;
    for (size_t i = 0; i < n * width; i++)
        centred[i] = (double)points[i] - axes[i % width];
    bool found = svd_create(&svd, centred, n, width, &ignored) == OK;
    size_t values = n < width ? n : width;
    for (size_t i = 0; found && i < values; i++)
        total += svd.s[i] * svd.s[i];
    for (size_t i = 0; found && i < AXES && i < values && svd.s[i] > 1e-7 * svd.s[0]; i++) {
        memcpy(axes + (1 + i) * width, svd.vt + i * width, width * sizeof *axes);
        axes[3 * width + i] = svd.s[i] * svd.s[i] / total;
    }
    return found;
}

double axes_along(const double *axes, size_t width, size_t axis, const float *point)
{
    double sum = 0;
    for (size_t i = 0; i < width; i++)
        sum += axes[(1 + axis) * width + i] * ((double)point[i] - axes[i]);
    return sum;
}
