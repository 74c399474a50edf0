#include "harness/run/workload.h"

#include <math.h>

#include "core/clock.h"
#include "core/scope.h"
#include "core/threads.h"
#include "harness/model/class_features.h"
#include "harness/model/model.h"
#include "harness/scenario/data.h"
#include "harness/selectors/selector.h"
#include "models/clip/cost.h"

/* --- Training --- */

/* What a training step goes through. */
struct step {
    const struct clip_dimensions *n;
    struct cost_experts experts;
    size_t images, texts, positions;
};

static struct step step_of(const struct run *run, const struct task *task)
{
    const struct model *model = &run->model;
    struct step step = {.n = &model->clip->dimensions,
                        .experts = adapters_cost(&model->clip->dimensions, &model->settings.adapter),
                        .images = task->settings.batch};
    model->head->texts(model, task, &step.texts, &step.positions);
    return step;
}

static double step_bytes(const struct step *s, enum precision precision)
{
    return (double)cost_step_bytes(s->n, s->images, s->texts, s->positions, &s->experts, precision);
}

static double adapter_step(const struct step *s)
{
    return cost_adapter_step(s->n, s->images, s->texts, s->positions, &s->experts);
}

/* Forward, and back to activations and weights; of deltas, whose products are small, to activations. */
static double passes_of(const struct run *run, enum tower tower)
{
    bool weights = run->model.groups & (tower == TOWER_IMAGE ? GROUP_IMAGE_TOWER : GROUP_TEXT_TOWER);
    return weights ? 3.0 : deltas_in_tower(run->model.deltas, tower) ? 2.0 : 1.0;
}

double workload_iteration(const struct run *run, const struct task *task)
{
    unsigned groups = run->model.groups;
    if (groups == GROUPS_NONE)
        return 0;
    struct step s = step_of(run, task);
    double images = cost_images(s.n, s.images), texts = cost_texts(s.n, s.texts, s.positions);
    if (groups & GROUP_ADAPTERS && !(groups & GROUPS_TOWERS))
        return adapter_step(&s);
    if (groups & GROUP_PREFIXES) /* forward, and back through frozen weights */
        return 2.0 * (images + texts);
    return (groups & GROUP_ADAPTERS ? 3.0 * cost_image_experts(s.n, s.images, &s.experts) : 0) +
           passes_of(run, TOWER_IMAGE) * images + passes_of(run, TOWER_TEXT) * texts;
}

double workload_step(const struct run *run, const struct task *task)
{
    bool counted = run->model.clip != NULL && run->model.settings.method->loss == NULL;
    return counted && task->settings.iterations > 0 ? workload_iteration(run, task) : 0;
}

static struct method_cost method_cost(const struct run *run)
{
    struct method_cost own = {0};
    if (run->model.settings.method->cost != NULL)
        run->model.settings.method->cost(&run->method, &own);
    return own;
}

/* A method's work besides iterations is divided evenly among tasks. */
double workload_training(const struct run *run, const struct task *task)
{
    return (double)task->settings.iterations * workload_iteration(run, task) +
           method_cost(run).operations / (double)(run->data.task_count - joint_first(&run->data, 0));
}

/* Of the scores of blocks: their steps and batches, with adapters in all of them. */
static double scoring(const struct run *run)
{
    struct adapter_settings everywhere = run->model.settings.adapter;
    size_t most = 2 * everywhere.score_steps;
    double operations = 0;
    if (!(run->model.groups & GROUP_ADAPTERS) || everywhere.place.blocks.rule != BLOCKS_BY_SCORE)
        return 0;
    everywhere.place.blocks = (struct block_choice){.rule = BLOCKS_ALL};
    for (size_t k = 0; k < run->data.task_count; k++) {
        size_t iterations = run->data.tasks[k].settings.iterations;
        struct step step = step_of(run, &run->data.tasks[k]);
        step.experts = adapters_cost(step.n, &everywhere);
        operations += (double)(most < iterations ? most : iterations) * adapter_step(&step);
    }
    return operations;
}

/* --- Selectors --- */

double workload_selector(const struct run *run, const struct task *task)
{
    static const double alexnet = 1.4e9; /* of an image: 0.71 GMACs (torchvision) */
    const struct selector_settings *s = &run->model.settings.selector;
    const struct selector_kind *kind = s->kind;
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    if (!settings_select(&run->model.settings) || kind->route != ROUTE_BY_ERRORS || task->dataset == NULL)
        return 0;
    size_t all = dataset_size(task->dataset, SPLIT_TRAIN), held_out = all / 10, most = selector_most(s),
           used = all - held_out < most ? all - held_out : most;
    double rows = kind->before != NULL ? (double)(s->iterations * s->batch) : 0,
           step = 3 * 2 * 2.0 * (double)(n->image_width * s->code); /* an autoencoder's, per row */
    if (kind->features == FEATURES_PIXELS)
        return (rows + (double)held_out) * alexnet + rows * step;
    return cost_images(n, used + held_out) + rows * step;
}

/* --- Evaluation --- */

static double test_images(const struct run *run, size_t j)
{
    return (double)dataset_size(run->data.tasks[j].dataset, SPLIT_TEST);
}

/* The prompts of all templates. */
static double test_texts(const struct run *run, size_t j)
{
    size_t texts, positions;
    if (!run->model.head->of_texts)
        return 0;
    run->model.head->texts(&run->model, &run->data.tasks[j], &texts, &positions);
    return cost_texts(&run->model.clip->dimensions, class_prompts(&run->data.tasks[j]), positions);
}

double workload_zero_shot(const struct run *run, size_t j)
{
    if (!run->model.head->of_texts)
        return 0;
    return test_images(run, j) * cost_images(&run->model.clip->dimensions, 1) + test_texts(run, j);
}

/* Whether images of future tasks go through trained parameters, unlike through routers of their own tasks. */
static bool changes_later_tasks(const struct run *run)
{
    return run->model.groups & GROUPS_WEIGHTS || run->model.settings.adapter.tasks != run->data.task_count ||
           run->model.settings.selector.kind->route == ROUTE_ONE;
}

double workload_image(const struct run *run)
{
    if (run->model.clip == NULL || run->model.settings.method->vote != NULL)
        return 0;
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &run->model.settings.adapter);
    return cost_images(n, 1) + (run->model.groups & GROUP_ADAPTERS ? cost_image_experts(n, 1, &experts) : 0);
}

void workload_tested(const struct run *run, size_t checkpoint, size_t *first, size_t *end)
{
    bool alone = run->model.settings.method->alone, seen = run->model.settings.label_space == LABEL_SPACE_SEEN;
    *first = alone ? checkpoint : 0;
    *end = alone || seen ? checkpoint + 1 : run->data.task_count;
}

double workload_evaluation(const struct run *run, size_t checkpoint, size_t j)
{
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &run->model.settings.adapter);
    size_t first, end;
    workload_tested(run, checkpoint, &first, &end);
    bool kept = run->model.groups == GROUPS_NONE || (j > checkpoint && !changes_later_tasks(run));
    if (j < first || j >= end || kept)
        return 0;
    return test_images(run, j) *
               (cost_images(n, 1) + (run->model.groups & GROUP_ADAPTERS ? cost_image_experts(n, 1, &experts) : 0)) +
           test_texts(run, j);
}

/* --- The run --- */

static void add_task(const struct run *run, size_t k, double done[WORK_KINDS])
{
    const struct task *task = joint_or(&run->data, k);
    done[WORK_TRAINING] += workload_training(run, task);
    done[WORK_SELECTOR] += workload_selector(run, &run->data.tasks[k]);
    for (size_t j = 0; j < run->data.task_count; j++)
        done[WORK_EVALUATION] += workload_evaluation(run, k, j);
}

void workload_count(const struct run *run, size_t task, size_t iteration, struct progress_work *work)
{
    *work = (struct progress_work){0};
    if (run->model.clip == NULL) { /* the work of an own method is unknown: tasks, evenly */
        work->total[WORK_TRAINING] = (double)run->data.task_count;
        work->done[WORK_TRAINING] = (double)task;
        return;
    }
    for (size_t j = 0; j < run->data.task_count; j++)
        work->total[WORK_EVALUATION] += workload_zero_shot(run, j);
    for (size_t k = joint_first(&run->data, 0); k < run->data.task_count; k++) {
        add_task(run, k, work->total);
        if (k < task)
            add_task(run, k, work->done);
    }
    if (task < run->data.task_count)
        work->done[WORK_TRAINING] += (double)iteration * workload_iteration(run, joint_or(&run->data, task));
}

/* --- Bytes --- */

/* Weights in bf16 beside those in f32: frozen ones of the run's model and of teachers, and on a GPU experts. */
static double copied_bytes(const struct run *run, size_t teachers)
{
    static const unsigned trained[TOWERS] = {GROUP_IMAGE_TOWER, GROUP_TEXT_TOWER};
    const struct model *model = &run->model;
    const struct clip_dimensions *n = &model->clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &model->settings.adapter);
    const struct cost_experts *above =
        model->groups & (GROUP_ADAPTERS | GROUP_DELTAS) ? &experts : NULL; /* gradients pass through the weights */
    size_t (*copied)(const struct clip_dimensions *, enum tower, const struct cost_experts *) =
        model->backend->asynchronous ? cost_rounded_bytes : cost_packed_bytes;
    double bytes = 0;
    if (model->backend->precision != PRECISION_BF16)
        return 0;
    for (int t = 0; t < TOWERS; t++)
        bytes += (double)(teachers * copied(n, (enum tower)t, NULL)) +
                 (model->groups & trained[t] ? 0 : (double)copied(n, (enum tower)t, above));
    if (model->groups & GROUP_ADAPTERS && model->backend->asynchronous)
        bytes += (double)adapters_rounded_bytes(n, &model->settings.adapter);
    return bytes;
}

/* What a GPU needs beside what is kept: staging queues of its images, and scratch memory. */
static double device_bytes(const struct run *run, size_t images, double scratch)
{
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    return run->model.backend->asynchronous
               ? scratch + (double)(TRANSFER_SLOTS * images * 3 * n->resolution * n->resolution)
               : 0;
}

/* The traffic of training, and the largest memory of a step or of an evaluation batch. */
static double add_steps(const struct run *run, struct estimate *estimate)
{
    const struct model *model = &run->model;
    const struct clip_dimensions *n = &model->clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &model->settings.adapter);
    size_t batch = model->evaluation_batch;
    double largest = (double)cost_evaluation_bytes(n, batch, &experts) + device_bytes(run, batch, 0);
    for (size_t k = joint_first(&run->data, 0); model->groups != GROUPS_NONE && k < run->data.task_count; k++) {
        const struct task *task = joint_or(&run->data, k);
        struct step step = step_of(run, task);
        size_t backward = cost_backward_bytes(n, step.images, step.texts, step.positions);
        size_t scratch = cost_scratch_bytes(n, step.images, step.texts, step.positions, &experts);
        largest = fmax(largest, step_bytes(&step, model->backend->precision) + (double)backward +
                                    device_bytes(run, step.images, (double)scratch));
        estimate->training_traffic += (double)task->settings.iterations * step_bytes(&step, PRECISION_F32);
    }
    return largest;
}

/* What a process has beside its arenas: libraries and their kernels, the database, lists of images. Measured with `mini`. */
static const double program_bytes = 32 << 20;

/* Memory and disk. A resume file has what is trained and the state of the method (a teacher, earlier weights), within a task also
 * the moments; its next version is put together in the host's memory and written beside it. */
static void add_storage(const struct run *run, double largest, struct estimate *estimate)
{
    const struct settings *s = &run->model.settings;
    const struct method_cost own = method_cost(run);
    double trained = 4.0 * (double)trained_values(&run->model),
           weights = 4.0 * (double)cost_weights(&run->model.clip->dimensions), moments = s->one_moment ? 1 : 2,
           copies = run->model.groups == GROUPS_NONE ? 0 : 1 + moments, /* beside the values */
        kept = s->checkpoints == CHECKPOINTS_LAST   ? 1
               : s->checkpoints == CHECKPOINTS_NONE ? 0
                                                    : (double)run->data.task_count,
           used = (double)run->model.memory.used;
    struct trained_group group; /* values beside those of the towers */
    for (size_t i = 0; trained_group_at(&run->model, i, &group); i++)
        if (group.parameters != run->model.clip->parameters)
            weights += 4.0 * (double)parameters_size(group.parameters);
    double resume =
        trained * (s->checkpoint_every > 0 ? 1 + moments : 1) + fmax(used - weights - copies * trained, 0) + own.kept;
    estimate->memory = used + own.memory + largest + copied_bytes(run, own.teachers) + (double)run->model.backend->held;
    if (!run->model.backend->asynchronous)
        estimate->memory += program_bytes + resume;
    estimate->disk = trained * kept + (s->checkpoints == CHECKPOINTS_STATES ? resume * kept : 0);
    estimate->resume = 2 * resume;
}

/* Of a decoded training image, the mean of some; those that are no files are not cached. */
static double image_bytes(const struct dataset *dataset)
{
    enum { SOME = 16 };
    size_t n = dataset_size(dataset, SPLIT_TRAIN), looks = n < SOME ? n : SOME, read = 0;
    double bytes = 0;
    for (size_t i = 0; i < looks && dataset_has_files(dataset, SPLIT_TRAIN); i++) {
        SCOPED(image_free) struct image image = {0};
        if (dataset_read(dataset, SPLIT_TRAIN, i * n / looks, &image, NULL, NULL) != OK)
            continue;
        bytes += 3.0 * image.width * image.height;
        read++;
    }
    return read > 0 ? bytes / (double)read : 0;
}

/* Crops of all test images, and whole training images: on disk of all tasks, in memory of one at a time. */
static double cached_bytes(const struct run *run, bool disk)
{
    const double crop = 3.0 * pow((double)run->model.clip->dimensions.resolution, 2);
    double tests = 0, training = 0;
    for (size_t k = 0; k < run->data.task_count; k++) {
        const struct dataset *dataset = run->data.tasks[k].dataset;
        double whole = (double)dataset_size(dataset, SPLIT_TRAIN) * image_bytes(dataset);
        tests += crop * (double)dataset_size(dataset, SPLIT_TEST);
        training = disk ? training + whole : fmax(training, whole);
    }
    return tests + training;
}

struct estimate workload_estimate(const struct run *run)
{
    if (run->model.clip == NULL) /* another program's work is unknown */
        return (struct estimate){0};
    const struct clip_dimensions *n = &run->model.clip->dimensions;
    const struct cost_experts experts = adapters_cost(n, &run->model.settings.adapter);
    const struct cache_settings *cache = &run->model.settings.cache;
    struct progress_work work;
    struct estimate estimate = {0};
    workload_count(run, 0, 0, &work);
    estimate.training = scoring(run) + work.total[WORK_TRAINING];
    estimate.evaluation = work.total[WORK_SELECTOR] + work.total[WORK_EVALUATION];
    estimate.evaluation_traffic =
        estimate.evaluation / cost_images(n, 1) * (double)cost_step_bytes(n, 1, 0, 0, &experts, PRECISION_F32);
    add_storage(run, add_steps(run, &estimate), &estimate);
    uint64_t limit =
        cache->memory_spare > 0 ? cache->memory_spare : cache->memory_limit; /* auto keeps half and spares half */
    if (cache->kind == CACHE_MEMORY)
        estimate.cached_memory = fmin((double)limit, cached_bytes(run, false));
    if (cache->kind == CACHE_DISK)
        estimate.cached_disk = fmin((double)cache->disk_limit, cached_bytes(run, true));
    return estimate;
}

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

/* [1024, 768] by a frozen weight [3072, 768], with a packed copy in bf16; as the bench `step` does, on a GPU with more rows, since
 * few leave most of it idle. */
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

static void print_cached(FILE *out, double bytes)
{
    if (bytes > 0)
        fprintf(out, ", up to %.0f MiB of decoded images", bytes / (1 << 20));
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
    fprintf(out, "# memory  about %.0f MiB", estimate->memory / (1 << 20));
    print_cached(out, estimate->cached_memory);
    fprintf(out, "# disk    about %.0f MiB in checkpoints, and %.0f MiB in resume files until a run ends",
            count * estimate->disk / (1 << 20), estimate->resume / (1 << 20));
    print_cached(out, estimate->cached_disk);
}
