/* What benches have in common: calls that must not fail, operands on a device, time, and the order of times.
 *
 *     struct bench b;
 *     must(bench_open(&b, &(struct backend_settings){.name = "cpu"}));
 *     struct gemm product = reference_product(&b, 1024);
 *     double seconds = seconds_of(&b, multiply, &product, 10);
 *     bench_close(&b);
 */
#pragma once

#include "core/clock.h"
#include "models/backend.h"

extern struct error error; /* of the last call that failed */
void must(status result);  /* ends the program with what failed; 77 where there is no device */

/* Of doubles, for qsort. */
int ascending(const void *a, const void *b);

/* Of at most MOST_FIGURES values. */
enum { MOST_FIGURES = 20 };
struct figures {
    double lowest, middle, highest;
};
struct figures figures_of(const double *values, size_t count);

/* Of a command of the shell: from its start to its end. */
struct effort {
    int ended;                 /* what system(3) answers */
    double seconds, of_a_core; /* of_a_core: of processors */
};
struct effort effort_of(const char *command);

struct bench {
    struct backend *backend;
    const struct backend_ops *ops;
    struct arena arena;         /* of operands */
    const void *byte;           /* on the device, also after the arena is reset; to read it is to wait */
    enum tensor_type type;      /* of what products read */
    const struct size *size;    /* of operations (operations.h), as are the next */
    size_t rows, values, slots; /* B · L, rows · d, B · K */
};

/* Takes "--backend NAME" or "--precision f32|bf16" at words[*i]; false: there is something else. */
bool read_backend(struct backend_settings *settings, int count, char **words, int *i);
status bench_open(struct bench *b, const struct backend_settings *settings);
void bench_close(struct bench *b);

/* --- On the device, in the arena --- */

void *memory(struct bench *b, size_t bytes); /* zero */
void *uploaded(struct bench *b, const void *values, size_t bytes);
void *drawn(struct bench *b, size_t n, enum tensor_type type); /* uniform within ±1; of TENSOR_U8 any byte */
int32_t *integers(struct bench *b, size_t n, size_t step, size_t modulus); /* 0, step, 2 step, … */
struct tensor drawn_images(struct bench *b, size_t count, size_t side);
struct matrix operand(struct bench *b, size_t rows, size_t columns); /* of the type that products read */

/* out [rows, 3072] = a [rows, 768] Wᵀ with a weight that is packed already: what other products are compared with. */
enum { PRODUCT_N = 3072, PRODUCT_K = 768 };
struct gemm reference_product(struct bench *b, size_t rows);
double reference_operations(size_t rows);

/* --- Time --- */

void wait_for_device(const struct bench *b);

/* Of one call; where the host does not wait for the device, the mean of several together. */
double seconds_of(const struct bench *b, void (*call)(void *context), void *context, size_t together);
