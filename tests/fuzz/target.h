/* What a fuzz target offers; libfuzzer.c or replay.c calls it. It must return 0 for any bytes, and neither crash, leak
 * nor hang. data is a copy of exactly size bytes, so that a sanitizer sees a read beyond it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int fuzz_target(const uint8_t *data, size_t size);

/* Reads size bytes, so that a sanitizer sees whether they are there. */
static inline void fuzz_touch(const void *data, size_t size)
{
    const volatile uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        (void)bytes[i];
}
