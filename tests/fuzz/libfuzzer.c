/* Runs a fuzz target under libFuzzer, which takes no notice of what a target returns. */
#include <stdlib.h>

#include "tests/fuzz/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (fuzz_target(data, size) != 0)
        abort();
    return 0;
}
