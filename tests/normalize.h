/* The normalisation of OpenAI's CLIP, each step rounded to float: the reference for what a tower is
 * given. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* pixels [resolution, resolution, 3], planes [3, resolution, resolution] */
static inline void normalize(const uint8_t *pixels, int resolution, float *planes)
{
    static const float mean[] = {0.48145466F, 0.4578275F, 0.40821073F},
                       deviation[] = {0.26862954F, 0.26130258F, 0.27577711F};
    size_t count = (size_t)resolution * (size_t)resolution;
    for (size_t c = 0; c < 3; c++) {
        float values[256];
        for (int p = 0; p < 256; p++)
            values[p] = ((float)p / 255.0F - mean[c]) / deviation[c];
        for (size_t i = 0; i < count; i++)
            planes[c * count + i] = values[pixels[3 * i + c]];
    }
}
