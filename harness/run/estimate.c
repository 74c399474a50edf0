#include "harness/run/estimate.h"

#include <math.h>

#include "core/clock.h"
#include "core/threads.h"
#include "harness/heads/trained.h"
#include "harness/run/workload.h"
#include "harness/scenario/joint.h"
#include "models/clip/cost.h"

/* --- The machine --- */

/* Of the fastest call in half a second, after a first one that prepares kernels: what the machine can do when it is left
 * alone, as the bench `step` measures it, which the shares below are of. */
static status time_of(struct backend *backend, const struct gemm *gemm, const struct multiply *multiply,
                      double *seconds, struct error *error)
{
    static const double enough = 0.5;
    const void *out = gemm != NULL ? gemm->out.data : multiply->out;
    double begin = clock_seconds();
    float one;
    *seconds = INFINITY;
    for (size_t calls = 0; calls < 3 || clock_seconds() - begin < enough; calls++) {
        double start = clock_seconds();
        TRY(gemm != NULL ? backend->ops->gemm(backend, gemm, error) : backend->ops->multiply(backend, multiply, error));
        TRY(backend->ops->download(backend, &one, out, sizeof one, error)); /* waits for the device */
        *seconds = calls > 0 ? fmin(*seconds, clock_seconds() - start) : INFINITY;
    }
    return OK;
}

/* [1024, 768] by a frozen weight [3072, 768], of which bf16 has a packed copy; as the bench `step` does. */
static status measure_products(struct backend *backend, struct arena *arena, double *rate, struct error *error)
{
    enum { M = 1024, N = 3072, K = 768 };
    enum tensor_type type = backend_operand_type(backend);
    struct tensor a, b, c;
    double seconds;
    TRY(tensor_take(&a, arena, type, "a", 2, (size_t[]){M, K}, error));
    TRY(tensor_take(&b, arena, TENSOR_F32, "b", 2, (size_t[]){N, K}, error));
    TRY(tensor_take(&c, arena, type, "c", 2, (size_t[]){M, N}, error));
    TRY(backend->ops->zero(backend, a.data, tensor_bytes(&a), error));
    TRY(backend->ops->zero(backend, b.data, tensor_bytes(&b), error));
    struct gemm gemm = {
        .a = matrix_of(&a), .b = matrix_of(&b), .transpose_b = true, .frozen_b = true, .out = matrix_of(&c)};
    TRY(time_of(backend, &gemm, NULL, &seconds, error));
    backend->forget(backend, b.data, (size_t)N * K); /* its memory becomes another's */
    *rate = 2.0 * M * N * K / seconds;
    return OK;
}

static status measure_memory(struct backend *backend, struct arena *arena, double *rate, struct error *error)
{
    size_t n = (size_t)1 << 23;
    struct tensor a, b, c;
    double seconds;
    TRY(tensor_take(&a, arena, TENSOR_F32, "a", 1, &n, error));
    TRY(tensor_take(&b, arena, TENSOR_F32, "b", 1, &n, error));
    TRY(tensor_take(&c, arena, TENSOR_F32, "c", 1, &n, error));
    TRY(backend->ops->zero(backend, a.data, tensor_bytes(&a), error));
    TRY(backend->ops->zero(backend, b.data, tensor_bytes(&b), error));
    TRY(time_of(backend, NULL, &(struct multiply){.n = n, .a = a.data, .b = b.data, .out = c.data}, &seconds, error));
    *rate = 3.0 * (double)tensor_bytes(&a) / seconds;
    return OK;
}

static status measure_on(struct backend *backend, struct machine_rates *rates, struct error *error)
{
    struct arena arena;
    TRY(backend->ops->arena_create(backend, &arena, 0, "rates", error));
    status result = measure_products(backend, &arena, &rates->products, error);
    arena_reset(&arena);
    NEXT(result, measure_memory(backend, &arena, &rates->memory, error));
    backend->ops->arena_destroy(backend, &arena);
    return result;
}

status machine_rates_measure(struct run *run, struct machine_rates *rates, struct error *error)
{
    struct backend *backend = run->model.backend;
    size_t threads = run->model.settings.backend.threads, cores = threads > 0 ? threads : threads_available();
    if (rates->products > 0 && rates->cores == cores && rates->asynchronous == backend->asynchronous &&
        rates->precision == backend->precision)
        return OK;
    *rates =
        (struct machine_rates){.cores = cores, .asynchronous = backend->asynchronous, .precision = backend->precision};
    return measure_on(backend, rates, error);
}

/* --- The run --- */

/* Of the scores of blocks: their steps and batches, with adapters in all of them. */
static double scoring_cost(const struct run *run)
{
    const struct adapter_settings *s = &run->model.settings.adapter;
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    struct adapter_settings everywhere = *s;
    double cost = 0;
    bool scored = run->model.groups & GROUP_ADAPTERS && s->place.blocks.rule == BLOCKS_BY_SCORE;
    everywhere.place.blocks = (struct block_choice){.rule = BLOCKS_ALL};
    const struct cost_experts experts = adapters_cost(n, &everywhere);
    for (size_t k = 0; scored && k < run->data.task_count; k++) {
        const struct task *task = &run->data.tasks[k];
        size_t texts, positions, iterations = task->settings.iterations,
                                 steps = 2 * s->score_steps < iterations ? 2 * s->score_steps : iterations;
        run->model.head->texts(&run->model, task, &texts, &positions);
        cost += (double)steps * cost_adapter_step(n, task->settings.batch, texts, positions, &experts);
    }
    return cost;
}

/* Weights in bf16 beside those in f32: frozen ones of the run's model and of teachers, and on a GPU experts. */
static double copied_bytes(const struct run *run, size_t teachers)
{
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &run->model.settings.adapter);
    const struct cost_experts *above =
        run->model.groups & (GROUP_ADAPTERS | GROUP_DELTAS) ? &experts : NULL; /* gradients pass through the weights */
    size_t (*copied)(const struct clip_dimensions *, enum tower, const struct cost_experts *) =
        run->model.backend->asynchronous ? cost_rounded_bytes : cost_packed_bytes;
    double bytes = 0;
    if (run->model.backend->precision != PRECISION_BF16)
        return 0;
    if (!(run->model.groups & GROUP_IMAGE_TOWER))
        bytes += (double)copied(n, TOWER_IMAGE, above);
    if (!(run->model.groups & GROUP_TEXT_TOWER))
        bytes += (double)copied(n, TOWER_TEXT, above);
    if (run->model.groups & GROUP_ADAPTERS && run->model.backend->asynchronous)
        bytes += (double)adapters_rounded_bytes(n, &run->model.settings.adapter);
    return bytes + (double)teachers * (double)(copied(n, TOWER_IMAGE, NULL) + copied(n, TOWER_TEXT, NULL));
}

/* At a time, of a step or an evaluation batch. */
static double largest_bytes(const struct run *run)
{
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &run->model.settings.adapter);
    size_t largest = cost_evaluation_bytes(n, run->model.evaluation_batch, &experts);
    for (size_t k = joint_first(&run->data, 0); run->model.groups != GROUPS_NONE && k < run->data.task_count; k++) {
        const struct task *task = joint_or(&run->data, k);
        size_t texts, positions;
        run->model.head->texts(&run->model, task, &texts, &positions);
        size_t bytes =
            cost_step_bytes(n, task->settings.batch, texts, positions, &experts, run->model.backend->precision);
        largest = bytes > largest ? bytes : largest;
    }
    return (double)largest;
}

static void count_operations(const struct run *run, struct estimate *estimate)
{
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &run->model.settings.adapter);
    struct progress_work work;
    workload_count(run, 0, 0, &work);
    estimate->training = scoring_cost(run) + work.total[WORK_TRAINING];
    estimate->evaluation = work.total[WORK_ZERO_SHOT] + work.total[WORK_SELECTOR] + work.total[WORK_EVALUATION];
    double image = (double)cost_step_bytes(n, 1, 0, 0, &experts, PRECISION_F32);
    estimate->evaluation_traffic = estimate->evaluation / cost_images(n, 1) * image;
    for (size_t k = joint_first(&run->data, 0); run->model.groups != GROUPS_NONE && k < run->data.task_count; k++) {
        const struct task *task = joint_or(&run->data, k);
        size_t texts, positions;
        run->model.head->texts(&run->model, task, &texts, &positions);
        estimate->training_traffic +=
            (double)task->settings.iterations *
            (double)cost_step_bytes(n, task->settings.batch, texts, positions, &experts, PRECISION_F32);
    }
}

status estimate_run(struct run *run, struct estimate *estimate, struct error *error)
{
    (void)error;
    *estimate = (struct estimate){0};
    count_operations(run, estimate);
    struct method_cost own = {0};
    if (run->model.settings.method->cost != NULL)
        run->model.settings.method->cost(&run->method, &own);
    double trained = 4.0 * (double)trained_values(&run->model),
           weights = 4.0 * (double)cost_weights(&run->model.clip->dimensions),
           moments = run->model.settings.one_moment ? 1 : 2;
    double copies = run->model.groups == GROUPS_NONE ? 0 : 1 + moments; /* beside the values */
    struct trained_group group;                                         /* values beside those of the towers */
    for (size_t i = 0; trained_group_at(&run->model, i, &group); i++)
        weights +=
            group.parameters != run->model.clip->parameters ? 4.0 * (double)parameters_size(group.parameters) : 0;
    double method =
        fmax((double)run->model.memory.used - weights - copies * trained, 0); /* a teacher, earlier weights */
    estimate->memory =
        (double)run->model.memory.used + own.memory + largest_bytes(run) + copied_bytes(run, own.teachers);
    double kept = run->model.settings.checkpoints == CHECKPOINTS_ALL    ? (double)run->data.task_count
                  : run->model.settings.checkpoints == CHECKPOINTS_LAST ? 1
                                                                        : 0;
    estimate->disk = trained * (kept + 1 + moments) + method + own.kept; /* a resume file within a task has both */
    const struct cache_settings *cache = &run->model.settings.cache;
    uint64_t limit =
        cache->memory_spare > 0 ? cache->memory_spare : cache->memory_limit; /* auto keeps half and spares half */
    estimate->cached_memory = cache->kind == CACHE_MEMORY ? (double)limit : 0;
    estimate->cached_disk = cache->kind == CACHE_DISK ? (double)cache->disk_limit : 0;
    return OK;
}

/* --- Time --- */

/* Which share of the product rate a run reaches while it multiplies, and how often the rest of it goes over the activations
 * that a forward pass produces (cost_step_bytes), at the memory rate. Fitted to the shares that tests/bench/step.c
 * measured in several runs on 2 cores of a Xeon with AMX that swings, of ViT-B/16 and `mini`: in f32 a step reached 81 to
 * 98% of the product rate and an evaluation 85 to 115%, in bf16 20 to 45% and 27 to 68%. On a GPU the shares are those of ViT-B/16 on an H100
 * (tests/bench/README.md), whatever is not products included. */
static const struct efficiency {
    double training, evaluation;               /* shares */
    double training_passes, evaluation_passes; /* over the activations */
} of_cpu[] = {{1, 1, 6, 0.5}, {0.55, 0.55, 10, 2}}, of_gpu[] = {{0.45, 0.71, 0, 0}, {0.11, 0.28, 0, 0}};

static const struct efficiency *efficiency_of(const struct machine_rates *rates)
{
    return rates->asynchronous ? &of_gpu[rates->precision] : &of_cpu[rates->precision];
}

double estimate_seconds(const struct estimate *estimate, const struct machine_rates *rates)
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

static void print_time(const struct estimate *estimate, const struct machine_rates *rates, double seeds, FILE *out)
{
    const struct efficiency *e = efficiency_of(rates);
    fprintf(out, "# time    ");
    add_duration(out, seeds * estimate_seconds(estimate, rates));
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

static void print_server(const struct estimate *estimate, const struct machine_rates *rates, double seeds, FILE *out)
{
    double faster = server_share * SERVER_CORES / (double)rates->cores;
    if (rates->asynchronous)
        return;
    fprintf(out, "# extrapolated, not measured, to %d such cores at %.0f%% of their rate by itself: ", SERVER_CORES,
            100 * server_share);
    add_duration(out, seeds * estimate_seconds(estimate, rates) / faster);
    fprintf(out, "\n");
}

static void print_bytes(FILE *out, const char *what, double bytes, const char *of, double cached)
{
    fprintf(out, "%s about %.0f MiB%s", what, bytes / (1 << 20), of);
    if (cached > 0)
        fprintf(out, ", up to %.0f MiB of decoded images", cached / (1 << 20));
    fprintf(out, "\n");
}

void estimate_print(const struct estimate *estimate, const struct machine_rates *rates, size_t seeds, FILE *out)
{
    double count = (double)seeds;
    fprintf(out, "# %zu run%s of %.2f TFLOP training and %.2f TFLOP evaluation and selectors\n", seeds,
            seeds == 1 ? "" : "s", estimate->training / 1e12, estimate->evaluation / 1e12);
    print_time(estimate, rates, count, out);
    fprintf(out, "#         rates of %zu core%s measured now; shares as measured by tests/bench on %s\n", rates->cores,
            rates->cores == 1 ? "" : "s", rates->asynchronous ? "an H100" : "2 cores with AMX");
    fprintf(out, "#         without reading, checking and decoding images and writing results\n");
    print_server(estimate, rates, count, out);
    print_bytes(out, "# memory ", estimate->memory, "", estimate->cached_memory);
    print_bytes(out, "# disk   ", count * estimate->disk, " in checkpoints", estimate->cached_disk);
}
