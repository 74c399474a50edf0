/* What the benchmark of the kernels times: every operation of models/backend.h that computes, with its operands. */
#pragma once

#include "models/backend.h"

struct size {
    const char *name;
    size_t images, positions, width, heads, hidden, resolution, patch;
    size_t prompts, prompt_positions, context, vocabulary, experts, top_k, tasks, bottleneck;
    double seconds;   /* spent on one operation, at least */
    size_t reference; /* rows of the product that others are compared with */
};

struct bench {
    struct backend *backend;
    const struct backend_ops *ops;
    struct arena arena; /* of one operation's operands */
    const struct size *size;
    enum tensor_type type;            /* of what products read */
    size_t rows, values, slots;       /* B · L, rows · d, B · K */
    struct dispatch dispatch;         /* borrowed by the operations that go along it */
    struct tensor pixels;             /* borrowed by patchify */
    double product_rate, memory_rate; /* per second */
};

extern struct error error; /* of the last call that failed */
void must(status result);  /* ends the program with what failed; 77 where there is no device */

/* What one call has to do: floating-point operations or, where that is 0, bytes. */
struct cost {
    double operations, bytes;
};

union operation {
#define MEMBER(name) struct name name;
    BACKEND_OPERATIONS(MEMBER)
#undef MEMBER
};

struct entry {
    const char *name;
    struct cost (*prepare)(struct bench *b, union operation *o); /* takes operands from the arena */
    status (*call)(struct bench *b, const union operation *o);
};
const struct entry *operation_at(size_t index); /* NULL past the last one */

void *memory(struct bench *b, size_t bytes);                         /* on the device, zero */
struct matrix operand(struct bench *b, size_t rows, size_t columns); /* random, of the type that products read */
