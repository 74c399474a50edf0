/* The numbers that recording.py draws, by their place: scale · u, u in ± 1/2 of 16 bits. */
#pragma once

#include <stdint.h>

static inline float recorded_draw(uint64_t place, double scale)
{
    return (float)(((double)((uint32_t)(place * 2654435761u + 12345u) >> 16) / 65536 - 0.5) * scale);
}
