/* What the benchmark of the kernels times: every operation of models/backend.h that computes, with its operands. */
#pragma once

#include "tests/bench/bench.h"

struct size {
    const char *name;
    size_t images, positions, width, heads, hidden, resolution, patch;
    size_t prompts, prompt_positions, context, vocabulary, experts, top_k, tasks, bottleneck;
    double seconds;   /* spent on one operation, at least */
    size_t reference; /* rows of the product that others are compared with */
};

/* What one call has to do: floating-point operations or, where that is 0, bytes. */
struct cost {
    double operations, bytes;
};

union operation {
#define MEMBER(name) struct name name;
    BACKEND_OPERATIONS(MEMBER)
#undef MEMBER
};

enum {
#define NUMBER(name) OPERATION_##name,
    BACKEND_OPERATIONS(NUMBER)
#undef NUMBER
        OPERATIONS
};

extern const struct entry {
    const char *name;
    struct cost (*prepare)(struct bench *b, union operation *o); /* takes operands from the arena */
    status (*call)(struct bench *b, const union operation *o);
} timed_operations[OPERATIONS];
