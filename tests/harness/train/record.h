/* The fixtures that the scripts record_*.py write.
 *
 *     struct safetensors *file = open_file(FIXTURES "/seed.safetensors");
 *     record_expect_near(found, small_run_recorded(file, "overlap")[0], 1e-4);
 *     float *x = record_on_device(run, small_run_recorded(file, "x"), 48);          // NULL: zeros
 *     record_expect_all(run, file, "y", y, 72, 1e-5);                        // y on the device
 */
#pragma once

#include <math.h>
#include <stdlib.h>

#include "tests/harness/small_run.h"
#include "tests/models/files/tensor_set.h"

/* Of 1 + |expected|. */
static inline void record_expect_near(double found, float expected, double tolerance)
{
    if (!(fabs(found - (double)expected) <= tolerance * (1 + fabs((double)expected))))
        fail_msg("expected %.7f, found %.7f", (double)expected, found);
}

/* In memory of the run's method. */
static inline float *record_on_device(const struct small_run *run, const float *values, size_t n)
{
    struct backend *backend = run->experiment->model.backend;
    struct tensor tensor;
    must(tensor_take(&tensor, run->experiment->method.memory, TENSOR_F32, "values", 1, &n, &error));
    if (values == NULL)
        must(backend->ops->zero(backend, tensor.data, n * sizeof *values, &error));
    else
        must(backend->ops->upload(backend, tensor.data, values, n * sizeof *values, &error));
    return tensor.data;
}

static inline void record_expect_all(const struct small_run *run, const struct safetensors *file, const char *name,
                                     const float *device, size_t n, double tolerance)
{
    const float *expected = small_run_recorded(file, name), *found = small_run_values(run, device, n);
    for (size_t i = 0; i < n; i++)
        record_expect_near((double)found[i], expected[i], tolerance);
}
