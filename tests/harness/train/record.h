/* The fixtures that the scripts record_*.py write.
 *
 *     struct safetensors *file = open_file(FIXTURES "/seed.safetensors");
 *     record_expect_near(found, record_read(file, "overlap")[0], 1e-4);
 */
#pragma once

#include <math.h>
#include <stdlib.h>

#include "tests/harness/small_run.h"
#include "tests/models/files/tensor_set.h"

/* Until the run is closed. */
static inline float *record_read(const struct safetensors *file, const char *name)
{
    const struct safetensor *found = safetensors_find(file, name);
    assert_non_null(found);
    float *values = small_run_keep(malloc(safetensor_elements(found) * sizeof *values));
    must(safetensor_to_floats(found, values, &error));
    return values;
}

/* Of 1 + |expected|. */
static inline void record_expect_near(double found, float expected, double tolerance)
{
    if (!(fabs(found - (double)expected) <= tolerance * (1 + fabs((double)expected))))
        fail_msg("expected %.7f, found %.7f", (double)expected, found);
}
