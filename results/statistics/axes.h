/* Two main directions of points, for functions of SQL: principal components (Pearson 1901) by the singular value decomposition of the
 * centred points.
 *
 *     double axes[AXES_SIZE(width)];
 *     if (axes_find(points, n, width, axes))
 *         x = axes_along(axes, width, 0, point);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The mean, two unit vectors and their shares of the variance, 0 to 1; a direction in which nothing varies is zero. */
#define AXES_SIZE(width) (3 * (width) + 2)

/* points [n, width]; their signs are those of struct svd. False where a point is not finite. */
bool axes_find(const float *points, size_t n, size_t width, double *axes);

/* The coordinate of a point along axis 0 or 1, from the mean on. */
double axes_along(const double *axes, size_t width, size_t axis, const float *point);
