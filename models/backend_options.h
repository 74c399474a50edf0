/* Options of commands and suites that open a backend. */
#pragma once

#include "core/option.h"
#include "models/backend.h"

/* Keys of commands that open a backend, beside its other options, with their defaults, and what they say; threads are left to
 * the caller. The precision auto is f32 everywhere: a suite asks for the same numbers on every machine. */
#define BACKEND_OPTIONS(backend_, precision_, device_)                                                                 \
    {.name = "backend",                                                                                                \
     .type = OPTION_CHOICE,                                                                                            \
     .choices = "auto|cpu|cuda",                                                                                       \
     .fallback = (backend_),                                                                                           \
     .help = "backend that does the arithmetic; auto: cuda where a GPU is found, else cpu"},                           \
        {.name = "precision",                                                                                          \
         .type = OPTION_CHOICE,                                                                                        \
         .choices = "auto|f32|bf16",                                                                                   \
         .fallback = (precision_),                                                                                     \
         .help = "precision of matrix products; auto is f32; bf16 is faster and needs a GPU, AMX or AVX-512 BF16"},    \
    {                                                                                                                  \
        .name = "device", .type = OPTION_INTEGER, .maximum = GPUS - 1, .fallback = (device_),                          \
        .help = "number of the GPU, from 0; results do not depend on it"                                               \
    }
#define BACKEND_OPTION_NAMES "backend|precision=auto|precision=f32|device" /* those that are incidental in a suite */
/* The number of GPUs that train together, counted from the one that `device` names. */
#define GPUS_OPTION(fallback_)                                                                                         \
    {                                                                                                                  \
        .name = "gpus", .type = OPTION_INTEGER, .minimum = 1, .maximum = GPUS, .fallback = (fallback_),                \
        .help = "GPUs that share every training batch; the same number gives the same bits, another number "           \
                "rounds differently"                                                                                   \
    }
struct backend_settings backend_settings_of(const struct options *options);
