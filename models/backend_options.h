/* Options of commands and suites that open a backend. */
#pragma once

#include "core/option.h"
#include "models/backend.h"

/* Keys of commands that open a backend, beside its other options, with their defaults, and what they say; threads are left to
 * the caller. The precision auto is f32 everywhere: a suite asks for the same numbers on every machine. */
#define BACKEND_OPTIONS(backend_, precision_, device_)                                                                 \
    OPTION_ONE_OF("backend", "auto|cpu|cuda", backend_,                                                                \
                  "backend that does the arithmetic; auto: cuda where a GPU is found, else cpu", .incidental = "*"),   \
        OPTION_ONE_OF(                                                                                                 \
            "precision", "auto|f32|bf16", precision_,                                                                  \
            "precision of matrix products; auto is f32; bf16 is faster and needs a GPU, AMX or AVX-512 BF16",          \
            .incidental = "auto|f32"),                                                                                 \
        OPTION_NUMBER(INTEGER, "device", 0, GPUS - 1, device_,                                                         \
                      "number of the GPU, from 0; results do not depend on it", .incidental = "*")
/* The number of GPUs that train together, counted from the one that `device` names. */
#define GPUS_OPTION(fallback_)                                                                                         \
    OPTION_NUMBER(INTEGER, "gpus", 1, GPUS, fallback_,                                                                 \
                  "GPUs that share every training batch; the same number gives the same bits, another number rounds "  \
                  "differently",                                                                                       \
                  .incidental = "1")
struct backend_settings backend_settings_of(const struct options *options);
