/* Dimensions of the CLIPs that benches have in common. */
#pragma once

#include "models/clip.h"

/* As published. */
#define VIT_B_16                                                                                                       \
    {                                                                                                                  \
        .embed = 512, .resolution = 224, .patch = 16, .image_width = 768, .image_hidden = 3072, .image_heads = 12,     \
        .image_blocks = 12, .context = 77, .vocabulary = 49408, .text_width = 512, .text_hidden = 2048,                \
        .text_heads = 8, .text_blocks = 12                                                                             \
    }

/* The one that ships. */
#define SMALL_CLIP                                                                                                     \
    {                                                                                                                  \
        .embed = 128, .resolution = 64, .patch = 8, .image_width = 128, .image_hidden = 512, .image_heads = 2,         \
        .image_blocks = 4, .context = 32, .vocabulary = 900, .text_width = 128, .text_hidden = 512, .text_heads = 2,   \
        .text_blocks = 3                                                                                               \
    }
