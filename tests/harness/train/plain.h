/* Plain loops in double that several tests compare with; rows are floats, as a model has them. */
#pragma once

#include <math.h>
#include <stddef.h>

static inline double plain_dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* ‖a − b‖² */
static inline double plain_gap(const float *a, const float *b, size_t n)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return squares;
}

/* to [n] += weight · row / ‖row‖ */
static inline void plain_add_unit(double *to, const float *row, size_t n, double weight)
{
    double length = sqrt(plain_dot(row, row, n));
    for (size_t i = 0; i < n; i++)
        to[i] += weight * (double)row[i] / length;
}

static inline size_t plain_best(const float *row, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = row[i] > row[best] ? i : best;
    return best;
}

/* b [n, columns] = a⁻¹ b by Gauss and Jordan without pivots, which the matrices here do not need; log |a|. */
static inline double plain_solve(double *a, double *b, size_t n, size_t columns)
{
    double logarithm = 0;
    for (size_t k = 0; k < n; k++) {
        logarithm += log(a[k * n + k]);
        for (size_t i = 0; i < n; i++) {
            double factor = i != k ? a[i * n + k] / a[k * n + k] : 0;
            for (size_t j = k; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
            for (size_t c = 0; c < columns; c++)
                b[i * columns + c] -= factor * b[k * columns + c];
        }
    }
    for (size_t i = 0; i < n * columns; i++)
        b[i] /= a[i / columns * (n + 1)];
    return logarithm;
}
