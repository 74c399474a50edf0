/* Times the algorithms that the GPU's library offers for each product of a training step, and says whether a row has the same
 * bits in any batch with them.
 *
 *     build/tests/products [--precision f32|bf16] [vit_b_16|tiny]
 *
 * models/cuda/product.cu uses answer 0: what the library answers first for 4096 rows. Where another answer is faster and
 * keeps a row's bits, a table of algorithms by shape is worth its lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "models/cuda/cuda_backend.h"
#include "tests/bench/bench.h"

struct tower {
    const char *name;
    size_t rows, width;
};

static const struct model {
    const char *name;
    struct tower towers[2];
} models[] = {
    {"vit_b_16", {{"images", 64 * 197, 768}, {"texts", 100 * 14, 512}}},
    {"tiny", {{"images", 9, 64}, {"texts", 5, 64}}},
};

/* A product of a block, in widths: out [rows, columns] = a [rows, depth] W, where `forward` Wᵀ, with bias. The stream of a
 * tower is in f32, other results are of the type that products read. */
static const struct product {
    const char *name;
    size_t depth, columns;
    bool forward, stream;
} products[] = {
    {"queries, keys, values", 1, 3, true, false},
    {"projection", 1, 1, true, true},
    {"first of the MLP", 1, 4, true, false},
    {"second of the MLP", 4, 1, true, true},
    {"gradient of queries, keys, values", 3, 1, false, true},
    {"gradient of the projection", 1, 1, false, false},
    {"gradient of the first of the MLP", 4, 1, false, true},
    {"gradient of the second of the MLP", 1, 4, false, false},
};

static struct gemm gemm_of(struct bench *b, const struct tower *tower, const struct product *p)
{
    size_t depth = p->depth * tower->width, columns = p->columns * tower->width;
    struct gemm o = {.a = operand(b, tower->rows, depth),
                     .b = p->forward ? operand(b, columns, depth) : operand(b, depth, columns),
                     .transpose_b = p->forward,
                     .out = p->stream
                                ? matrix_rows(memory(b, tower->rows * columns * sizeof(float)), tower->rows, columns)
                                : operand(b, tower->rows, columns)};
    if (p->forward)
        o.bias = memory(b, columns * sizeof(float));
    if (p->forward && p->stream)
        o.addend = o.out;
    return o;
}

struct timed {
    const struct bench *bench;
    const struct gemm *gemm;
};

static void multiply(void *context)
{
    const struct timed *t = context;
    must(t->bench->ops->gemm(t->bench->backend, t->gemm, &error));
}

/* out from zero, of the first rows alone; the caller frees it. */
static char *result_of(struct bench *b, struct gemm o, size_t rows, status *result)
{
    size_t bytes = rows * o.out.columns * (o.out.type == TENSOR_BF16 ? 2 : sizeof(float));
    char *host = xmalloc(bytes);
    o.a.rows = o.out.rows = rows;
    if (o.addend.data != NULL)
        o.addend.rows = rows;
    must(b->ops->zero(b->backend, o.out.data, bytes, &error));
    *result = b->ops->gemm(b->backend, &o, &error);
    must(b->ops->download(b->backend, host, o.out.data, bytes, &error));
    return host;
}

/* "yes", "no", or "refused" where the algorithm cannot do a number of rows. */
static const char *keeps_bits(struct bench *b, const struct gemm *o)
{
    const size_t parts[] = {1, 1 + o->a.rows / 3, o->a.rows - 1};
    size_t row = o->out.columns * (o->out.type == TENSOR_BF16 ? 2 : sizeof(float));
    const char *answer = "yes";
    status result;
    char *whole = result_of(b, *o, o->a.rows, &result);
    must(result);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *part = result_of(b, *o, parts[i], &result);
        if (result != OK)
            answer = "refused";
        else if (memcmp(whole, part, parts[i] * row) != 0)
            answer = "no";
        free(part);
    }
    free(whole);
    return answer;
}

static void compare(struct bench *b, const struct tower *tower, const struct product *p)
{
    enum { ROUNDS = 9, TOGETHER = 10 };
    struct gemm o = gemm_of(b, tower, p);
    double operations = 2.0 * (double)o.out.rows * (double)o.out.columns * (double)o.a.columns;
    printf("%s, %s: %zu x %zu x %zu\n", tower->name, p->name, o.out.rows, o.out.columns, o.a.columns);
    for (int answer = 0; answer < CUDA_PRODUCT_ANSWERS; answer++) {
        char text[200];
        cuda_products_use(b->backend, answer);
        if (b->ops->gemm(b->backend, &o, &error) != OK) {
            printf("%8d  refused: %s\n", answer, error.message);
            continue;
        }
        cuda_products_describe(b->backend, text, sizeof text);
        double times[ROUNDS];
        for (size_t i = 0; i < ROUNDS; i++)
            times[i] = seconds_of(b, multiply, &(struct timed){b, &o}, TOGETHER);
        double seconds = figures_of(times, ROUNDS).middle;
        printf("%8d %10.1f µs %8.1f TFLOP/s, a row keeps its bits: %-8s %s\n", answer, seconds * 1e6,
               operations / seconds / 1e12, keeps_bits(b, &o), text);
    }
    cuda_products_use(b->backend, 0);
    arena_reset(&b->arena);
}

int main(int argc, char **argv)
{
    struct bench b;
    struct backend_settings settings = {0};
    const struct model *model = &models[0];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "tiny") == 0)
            model = &models[1];
        else if (strcmp(argv[i], "vit_b_16") != 0 && !read_backend(&settings, argc, argv, &i)) {
            fprintf(stderr, "usage: products [--precision f32|bf16] [vit_b_16|tiny]\n");
            return 2;
        }
    }
    settings.name = "cuda";
    must(bench_open(&b, &settings));
    for (size_t t = 0; t < sizeof model->towers / sizeof *model->towers; t++)
        for (size_t p = 0; p < sizeof products / sizeof *products; p++)
            compare(&b, &model->towers[t], &products[p]);
    bench_close(&b);
    return 0;
}
