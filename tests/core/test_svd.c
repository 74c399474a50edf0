/* The singular value decomposition: what NumPy's documentation promises of numpy.linalg.svd, and known values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/svd.h"
#include "tests/test.h"

/* rank: at most that of the matrix. */
static void decompose(size_t rows, size_t columns, size_t rank)
{
    size_t k = rows < columns ? rows : columns;
    double *a = calloc(rows * columns, sizeof *a), *copy = calloc(rows * columns, sizeof *a);
    struct svd f;
    struct rng rng = rng_make(1, RNG_TEST, 0, (uint32_t)(rows * 1000 + columns));
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            for (size_t i = 0; i < rank; i++)
                a[r * columns + c] += (double)rng_normal(&rng, r * rank + i) *
                                      (double)rng_normal(&rng, (rows + c) * rank + i) / (double)(i + 1);
    memcpy(copy, a, rows * columns * sizeof *a);
    assert_ok(svd_create(&f, copy, rows, columns, &error));
    const double *u = f.u, *s = f.s, *vt = f.vt;
    for (size_t i = 0; i < k; i++) {
        size_t largest = 0;
        assert_true(s[i] >= 0 && (i == 0 || s[i] <= s[i - 1]));
        assert_true((s[i] > 1e-10 * s[0]) == (i < rank));
        for (size_t r = 1; r < rows; r++)
            largest = fabs(u[r * k + i]) > fabs(u[largest * k + i]) ? r : largest;
        assert_true(u[largest * k + i] > 0);
        for (size_t j = 0; j < k; j++) {
            double uu = 0, vv = 0;
            for (size_t r = 0; r < rows; r++)
                uu += u[r * k + i] * u[r * k + j];
            for (size_t c = 0; c < columns; c++)
                vv += vt[i * columns + c] * vt[j * columns + c];
            assert_true(fabs(uu - (i == j)) < 1e-12 && fabs(vv - (i == j)) < 1e-12);
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            double sum = 0;
            for (size_t i = 0; i < k; i++)
                sum += u[r * k + i] * s[i] * vt[i * columns + c];
            assert_true(fabs(sum - a[r * columns + c]) < 1e-12 * s[0]);
        }
    free(a), free(copy), svd_free(&f);
}

TEST(the_product_is_the_matrix)
{
    decompose(1, 1, 1);
    decompose(7, 7, 7);
    decompose(40, 9, 9);
    decompose(9, 40, 9);
    decompose(30, 30, 5);
    decompose(65, 33, 20);
}

TEST(known_values)
{
    double a[] = {3, 0, 4, 5}; /* AᵀA has eigenvalues 45 and 5 */
    struct svd f;
    assert_ok(svd_create(&f, a, 2, 2, &error));
    assert_true(fabs(f.s[0] - sqrt(45)) < 1e-14 && fabs(f.s[1] - sqrt(5)) < 1e-14);
    assert_true(fabs(f.u[0] - 1 / sqrt(10)) < 1e-14 && fabs(f.u[2] - 3 / sqrt(10)) < 1e-14);
    assert_true(fabs(f.vt[0] - sqrt(0.5)) < 1e-14 && fabs(f.vt[1] - sqrt(0.5)) < 1e-14);
    svd_free(&f);
}

TEST(what_is_not_finite_is_refused)
{
    double a[] = {1, 2, NAN, 4};
    struct svd f;
    assert_fails(svd_create(&f, a, 2, 2, &error), ERROR_FORMAT, "value 2 of 2 × 2 is not finite");
    svd_free(&f);
}
