/* What a fuzz target offers; libfuzzer.c or replay.c calls it. For any bytes it returns 0, and neither crashes, leaks, hangs
 * nor breaks an assertion of its own. data is a copy of exactly size bytes, so that a sanitizer sees a read beyond it. */
#pragma once

#undef NDEBUG
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

int fuzz_target(const uint8_t *data, size_t size);

extern struct error fuzz_error; /* of whatever is refused: messages are formatted, too */

/* Reads size bytes, so that a sanitizer sees whether they are there. */
static inline void fuzz_touch(const void *data, size_t size)
{
    const volatile uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        (void)bytes[i];
}
