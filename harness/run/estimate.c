#include "harness/run/estimate.h"

#include <math.h>
#include <time.h>

#include "harness/scenario/joint.h"
#include "harness/train/trained.h"
#include "models/clip/cost.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

status product_rate(struct backend *backend, struct arena *arena, double *rate, struct error *error)
{
    enum { M = 1024, N = 3072, K = 768 };
    struct arena_mark mark = arena_mark(arena);
    struct tensor a, b, c;
    TRY(tensor_take(&a, arena, TENSOR_F32, "a", 2, (size_t[]){M, K}, error));
    TRY(tensor_take(&b, arena, TENSOR_F32, "b", 2, (size_t[]){N, K}, error));
    TRY(tensor_take(&c, arena, TENSOR_F32, "c", 2, (size_t[]){M, N}, error));
    TRY(backend->ops->zero(backend, a.data, tensor_bytes(&a), error));
    TRY(backend->ops->zero(backend, b.data, tensor_bytes(&b), error));
    struct gemm gemm = {.a = matrix_of(&a), .b = matrix_of(&b), .transpose_b = true, .out = matrix_of(&c)};
    TRY(backend->ops->gemm(backend, &gemm, error)); /* kernels are made on the first call */
    double start = now(), seconds = 0;
    size_t products = 0;
    float one;
    while (seconds < 0.25) {
        TRY(backend->ops->gemm(backend, &gemm, error));
        TRY(backend->ops->download(backend, &one, c.data, sizeof one, error)); /* waits for the device */
        products++;
        seconds = now() - start;
    }
    *rate = 2.0 * M * N * K * (double)products / seconds;
    arena_release(arena, mark);
    return OK;
}

static double step_cost(const struct experiment *e, const struct task *task)
{
    const struct clip_dimensions *n = &e->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &e->settings.adapter);
    size_t texts, positions, batch = task->settings.batch;
    if (e->model.groups == GROUPS_NONE)
        return 0;
    e->model.head->texts(e, task, &texts, &positions);
    if (e->model.groups & GROUP_ADAPTERS && !(e->model.groups & GROUPS_TOWERS))
        return cost_adapter_step(n, batch, texts, positions, &experts);
    return (e->model.groups & GROUP_ADAPTERS ? 3.0 * cost_image_experts(n, batch, &experts) : 0) +
           (e->model.groups & GROUP_IMAGE_TOWER ? 3.0 : 1.0) * cost_images(n, batch) +
           (e->model.groups & GROUP_TEXT_TOWER ? 3.0 : 1.0) * cost_texts(n, texts, positions);
}

/* Of the scores of blocks: as many steps, of adapters in all of them. */
static double scoring_cost(const struct experiment *e)
{
    const struct adapter_settings *s = &e->settings.adapter;
    const struct clip_dimensions *n = &e->model.clip->dimensions;
    struct adapter_settings everywhere = *s;
    double cost = 0;
    bool scored = e->model.groups & GROUP_ADAPTERS && s->place.blocks.rule == BLOCKS_BY_SCORE;
    everywhere.place.blocks = (struct block_choice){.rule = BLOCKS_ALL};
    const struct cost_experts experts = adapters_cost(n, &everywhere);
    for (size_t k = 0; scored && k < e->data.task_count; k++) {
        const struct task *task = &e->data.tasks[k];
        size_t texts, positions, iterations = task->settings.iterations,
                                 steps = s->score_steps < iterations ? s->score_steps : iterations;
        e->model.head->texts(e, task, &texts, &positions);
        cost += (double)steps * cost_adapter_step(n, task->settings.batch, texts, positions, &experts);
    }
    return cost;
}

/* The zero-shot pass over every test image, and after each task the images of the trained tasks. */
static double evaluation_cost(const struct experiment *e, size_t k)
{
    const struct clip_dimensions *n = &e->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &e->settings.adapter);
    double image = cost_images(n, 1) + (e->model.groups & GROUP_ADAPTERS ? cost_image_experts(n, 1, &experts) : 0);
    double images = (double)dataset_size(e->data.tasks[k].dataset, SPLIT_TEST);
    double checkpoints = e->model.groups == GROUPS_NONE                           ? 0
                         : e->settings.method->alone || e->settings.method->joint ? 1
                         : e->model.groups & GROUPS_TOWERS                        ? (double)e->data.task_count
                                                                                  : (double)(e->data.task_count - k);
    return images * (cost_images(n, 1) + checkpoints * image);
}

static struct method_cost method_cost_of(const struct experiment *e)
{
    struct method_cost cost = {0};
    if (e->settings.method->cost != NULL)
        e->settings.method->cost(&e->method, &cost);
    return cost;
}

status estimate_run(struct experiment *e, struct estimate *estimate, struct error *error)
{
    const struct clip_dimensions *n = &e->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &e->settings.adapter);
    *estimate = (struct estimate){0};
    size_t largest = 0;
    estimate->training = scoring_cost(e);
    for (size_t k = 0; k < e->data.task_count; k++)
        estimate->evaluation += evaluation_cost(e, k);
    for (size_t k = joint_first(&e->data, 0); k < e->data.task_count; k++) {
        const struct task *task = joint_or(&e->data, k);
        estimate->training += (double)task->settings.iterations * step_cost(e, task);
        size_t texts, positions;
        e->model.head->texts(e, task, &texts, &positions);
        size_t bytes = cost_step_bytes(n, task->settings.batch, texts, positions, &experts);
        largest = e->model.groups != GROUPS_NONE && bytes > largest ? bytes : largest;
    }
    double trained = 4.0 * (double)trained_values(e), weights = 4.0 * (double)cost_weights(n);
    double moments = e->settings.one_moment ? 1 : 2;
    double copies = e->model.groups == GROUPS_NONE ? 0 : 1 + moments, /* beside the values */
        own_values = e->model.groups & GROUP_ADAPTERS ? 4.0 * (double)adapters_values(e->model.adapters) : 0;
    double method = fmax((double)e->model.memory.used - weights - own_values - copies * trained,
                         0); /* a teacher, earlier weights */
    estimate->memory = (double)e->model.memory.used + (double)largest;
    const struct method_cost own = method_cost_of(e);
    estimate->training += own.operations;
    estimate->memory += own.memory;
    double kept = e->settings.checkpoints == CHECKPOINTS_ALL    ? (double)e->data.task_count
                  : e->settings.checkpoints == CHECKPOINTS_LAST ? 1
                                                                : 0;
    estimate->disk = trained * (kept + 1 + moments) + method + own.kept; /* a resume file within a task has both */
    const struct cache_settings *cache = &e->settings.cache;
    estimate->cached_memory = cache->kind == CACHE_MEMORY ? (double)cache->memory_limit : 0;
    estimate->cached_disk = cache->kind == CACHE_DISK ? (double)cache->disk_limit : 0;
    return product_rate(e->model.backend, &e->model.step_memory, &estimate->rate, error);
}

static void print_room(FILE *out, const char *what, double bytes, const char *of, double cached)
{
    fprintf(out, "%s about %.0f MiB%s", what, bytes / (1 << 20), of);
    if (cached > 0)
        fprintf(out, ", up to %.0f MiB of decoded images", cached / (1 << 20));
    fprintf(out, "\n");
}

static void print_duration(FILE *out, const char *what, double seconds)
{
    if (seconds < 120)
        fprintf(out, "%s about %.0f s", what, seconds);
    else if (seconds < 7200)
        fprintf(out, "%s about %.0f min", what, seconds / 60);
    else
        fprintf(out, "%s about %.1f h", what, seconds / 3600);
}

/* A run reaches about two thirds of the product rate; norms, activations and decoding take the rest. */
double estimate_seconds(const struct estimate *estimate)
{
    return (estimate->training + estimate->evaluation) / (0.65 * estimate->rate);
}

void estimate_print(const struct estimate *estimate, size_t seeds, FILE *out)
{
    double count = (double)seeds;
    fprintf(out, "# %zu run%s of %.2f TFLOP training and %.2f TFLOP evaluation at a product rate of %.0f GFLOP/s\n",
            seeds, seeds == 1 ? "" : "s", estimate->training / 1e12, estimate->evaluation / 1e12, estimate->rate / 1e9);
    print_duration(out, "# time   ", count * estimate_seconds(estimate));
    fprintf(out, "\n");
    print_room(out, "# memory ", estimate->memory, "", estimate->cached_memory);
    print_room(out, "# disk   ", count * estimate->disk, " in checkpoints", estimate->cached_disk);
}
