#include "harness/run/rates.h"

#include <math.h>

#include "core/clock.h"
#include "core/threads.h"

/* --- The machine --- */

/* Of the fastest call in a fifth of a second, after a first one that prepares kernels: what the machine can do when it is left
 * alone, as the bench `step` measures it, which the shares below are of. A device gets as many calls at a time as take it longer
 * than to begin and to answer. */
static status time_of(struct backend *backend, const struct gemm *gemm, const struct multiply *multiply,
                      double *seconds, struct error *error)
{
    static const double enough = 0.2, together = 0.01;
    const void *out = gemm != NULL ? gemm->out.data : multiply->out;
    double begin = clock_seconds(), last = INFINITY;
    float one;
    *seconds = INFINITY;
    for (size_t calls = 0, each = 1; calls < 3 || clock_seconds() - begin < enough; calls++) {
        each *= backend->asynchronous && last < together ? 2 : 1;
        double start = clock_seconds();
        for (size_t i = 0; i < each; i++)
            TRY(gemm != NULL ? backend->ops->gemm(backend, gemm, error)
                             : backend->ops->multiply(backend, multiply, error));
        TRY(backend->ops->download(backend, &one, out, sizeof one, error)); /* waits for the device */
        last = clock_seconds() - start;
        *seconds = calls > 0 ? fmin(*seconds, last / (double)each) : INFINITY;
    }
    return OK;
}

static status take(struct tensor *tensor, struct backend *backend, struct arena *arena, enum tensor_type type,
                   size_t rows, size_t columns, struct error *error)
{
    TRY(tensor_take(tensor, arena, type, "rates", 2, (size_t[]){rows, columns}, error));
    return backend->ops->zero(backend, tensor->data, tensor_bytes(tensor), error);
}

/* [1024, 768] by a frozen weight [3072, 768], of which bf16 has a packed copy; as the bench `step` does, on a GPU with more rows,
 * too few of which leave most of it idle. */
static status measure_products(struct backend *backend, struct arena *arena, double *rate, struct error *error)
{
    enum { M = 1024, MORE = 12608, N = 3072, K = 768 };
    enum tensor_type type = backend_operand_type(backend);
    size_t most = backend->asynchronous ? MORE : M;
    struct tensor a, b, c;
    double seconds;
    TRY(take(&a, backend, arena, type, most, K, error));
    TRY(take(&b, backend, arena, TENSOR_F32, N, K, error));
    TRY(take(&c, backend, arena, type, most, N, error));
    struct gemm gemm = {
        .a = matrix_of(&a), .b = matrix_of(&b), .transpose_b = true, .frozen_b = true, .out = matrix_of(&c)};
    gemm.a.rows = gemm.out.rows = M;
    TRY(time_of(backend, &gemm, NULL, &seconds, error));
    if (most > M && seconds < 0.01) { /* not the emulated one, which takes minutes */
        gemm.a.rows = gemm.out.rows = most;
        TRY(time_of(backend, &gemm, NULL, &seconds, error));
    }
    backend->forget(backend, b.data, (size_t)N * K); /* its memory becomes another's */
    *rate = 2.0 * (double)gemm.out.rows * N * K / seconds;
    return OK;
}

static status measure_memory(struct backend *backend, struct arena *arena, double *rate, struct error *error)
{
    enum { ROWS = 1 << 13, COLUMNS = 1 << 10 };
    struct tensor t[3];
    double seconds;
    for (size_t i = 0; i < 3; i++)
        TRY(take(&t[i], backend, arena, TENSOR_F32, ROWS, COLUMNS, error));
    struct multiply multiply = {.n = ROWS * COLUMNS, .a = t[0].data, .b = t[1].data, .out = t[2].data};
    TRY(time_of(backend, NULL, &multiply, &seconds, error));
    *rate = 3.0 * (double)tensor_bytes(&t[0]) / seconds;
    return OK;
}

status rates_measure(struct rates *rates, struct run *run, struct error *error)
{
    struct backend *backend = run->model.backend;
    size_t threads = run->model.settings.backend.threads, cores = threads > 0 ? threads : threads_available();
    struct arena arena;
    if (rates->products > 0 && rates->cores == cores && rates->asynchronous == backend->asynchronous &&
        rates->precision == backend->precision)
        return OK;
    *rates = (struct rates){.cores = cores, .asynchronous = backend->asynchronous, .precision = backend->precision};
    TRY(backend->ops->arena_create(backend, &arena, 0, "rates", error));
    status result = measure_products(backend, &arena, &rates->products, error);
    arena_reset(&arena);
    NEXT(result, measure_memory(backend, &arena, &rates->memory, error));
    backend->ops->arena_destroy(backend, &arena);
    return result;
}

/* --- What work comes to --- */

/* Which share of the product rate a run reaches while it multiplies, and how often the rest of it goes over the activations
 * that a forward pass produces (cost_step_bytes), at the memory rate. Fitted to the shares that tests/bench/step.c
 * measured in several runs on 2 cores of a Xeon with AMX that swings, of ViT-B/16 and `mini`: in f32 a step reached 81 to
 * 98% of the product rate and an evaluation 85 to 115%, in bf16 20 to 45% and 27 to 68%. On a GPU the shares are those of ViT-B/16 on an H100
 * (tests/bench/README.md), whatever is not products included. */
static const struct efficiency {
    double training, evaluation;               /* shares */
    double training_passes, evaluation_passes; /* over the activations */
} of_cpu[] = {{1, 1, 6, 0.5}, {0.55, 0.55, 10, 2}}, of_gpu[] = {{0.45, 0.71, 0, 0}, {0.11, 0.28, 0, 0}};

static const struct efficiency *efficiency_of(const struct rates *rates)
{
    return rates->asynchronous ? &of_gpu[rates->precision] : &of_cpu[rates->precision];
}

double rates_seconds(const struct rates *rates, const struct estimate *estimate)
{
    const struct efficiency *e = efficiency_of(rates);
    return (estimate->training / e->training + estimate->evaluation / e->evaluation) / rates->products +
           (estimate->training_traffic * e->training_passes + estimate->evaluation_traffic * e->evaluation_passes) /
               rates->memory;
}

static void add_duration(FILE *out, double seconds)
{
    if (seconds < 120)
        fprintf(out, "about %.0f s", seconds);
    else if (seconds < 7200)
        fprintf(out, "about %.0f min", seconds / 60);
    else
        fprintf(out, "about %.1f h", seconds / 3600);
}

static void print_time(const struct rates *rates, const struct estimate *estimate, double seeds, FILE *out)
{
    const struct efficiency *e = efficiency_of(rates);
    fprintf(out, "# time    ");
    add_duration(out, seeds * rates_seconds(rates, estimate));
    fprintf(out, " in %s, at %.0f%% of %.0f GFLOP/s", precision_name(rates->precision), 100 * e->training,
            rates->products / 1e9);
    if (e->evaluation != e->training)
        fprintf(out, " in training and %.0f%% in evaluation", 100 * e->evaluation);
    if (e->training_passes > 0)
        fprintf(out, " and %g (evaluation: %g) passes over activations at %.1f GB/s", e->training_passes,
                e->evaluation_passes, rates->memory / 1e9);
    fprintf(out, "\n");
}

/* An assumption, not a measurement: rates of one core times cores times this. Memory and the parts that few cores share do not
 * grow with their number. */
static const double server_share = 0.5;
enum { SERVER_CORES = 64 };

static void print_server(const struct rates *rates, const struct estimate *estimate, double seeds, FILE *out)
{
    double faster = server_share * SERVER_CORES / (double)rates->cores;
    if (rates->asynchronous)
        return;
    fprintf(out, "# extrapolated, not measured, to %d such cores at %.0f%% of their rate by itself: ", SERVER_CORES,
            100 * server_share);
    add_duration(out, seeds * rates_seconds(rates, estimate) / faster);
    fprintf(out, "\n");
}

static void print_bytes(FILE *out, const char *what, double bytes, const char *of, double cached)
{
    fprintf(out, "%s about %.0f MiB%s", what, bytes / (1 << 20), of);
    if (cached > 0)
        fprintf(out, ", up to %.0f MiB of decoded images", cached / (1 << 20));
    fprintf(out, "\n");
}

void rates_print(const struct rates *rates, const struct estimate *estimate, size_t seeds, FILE *out)
{
    double count = (double)seeds;
    fprintf(out, "# %zu run%s of %.2f TFLOP training and %.2f TFLOP evaluation and selectors\n", seeds,
            seeds == 1 ? "" : "s", estimate->training / 1e12, estimate->evaluation / 1e12);
    print_time(rates, estimate, count, out);
    fprintf(out, "#         rates of %zu core%s measured now; shares as measured by tests/bench on %s\n", rates->cores,
            rates->cores == 1 ? "" : "s", rates->asynchronous ? "an H100" : "2 cores with AMX");
    fprintf(out, "#         without reading, checking and decoding images and writing results\n");
    print_server(rates, estimate, count, out);
    print_bytes(out, "# memory ", estimate->memory, "", estimate->cached_memory);
    print_bytes(out, "# disk   ", count * estimate->disk, " in checkpoints", estimate->cached_disk);
}
