/* What a fuzz target offers; libFuzzer or replay.c calls it. It must return 0 for any bytes, and neither crash, leak nor hang.
 * data is a copy of exactly size bytes, so that a sanitizer sees a read beyond it. */
#ifndef MTIL_TESTS_FUZZ_TARGET_H
#define MTIL_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
