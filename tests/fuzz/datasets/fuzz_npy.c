/* NumPy's files with whole numbers. */
#include "tests/fuzz/target.h"

#include <stdlib.h>

#include "datasets/formats/npy.h"
#include "tests/fuzz/input.h"

int fuzz_target(const uint8_t *data, size_t size)
{
    int64_t *values;
    size_t count;
    if (npy_read_integers(input_file(data, size), &values, &count, &fuzz_error) != OK)
        return 0;
    fuzz_touch(values, count * sizeof *values);
    free(values);
    return 0;
}
