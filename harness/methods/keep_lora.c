/* KeepLoRA (Luo et al., "KeepLoRA: Continual Learning with Residual Gradient Adaptation", ICLR 2026, arXiv 2601.19659): low-rank
 * deltas W + scale · Bᵀ A of which A is fixed in training, in directions of the task's gradient that neither the pre-trained weight
 * nor the inputs of earlier tasks use (harness/train/services/subspace.h). Per matrix:
 *
 *     before the first task   U from the weight, up to weight_share of its Σ s²
 *     before each task        the mean gradient over a pass of the task's batches, without U: A and B start as its first vectors;
 *                             scale · Bᵀ A of the start is subtracted from W, so that the function is as before
 *     after each task         U grows by the inputs of the layer, up to feature_share of their Σ s²
 *
 * Followed from the public code (MaolinLuo/KeepLoRA, MTIL/), where the paper leaves it open: U of a weight are its vectors on the
 * side of the outputs, so that matrices are square; the inputs are a mean over the batches, position by position, of batches of equal
 * size, not their products. What differs: the decomposition is exact, where the code draws a randomised one; the inputs of a prompt
 * end at the longest of the task; with too few images for one batch the pass is that batch, where the code divides by 0.
 *
 * A task has two sets of rows, the start with −B, which is merged, and what is trained. Only rank 0 decomposes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/heads/trained.h"
#include "harness/methods/methods.h"
#include "harness/train/batches.h"
#include "harness/train/services/subspace.h"
#include "harness/train/trainer.h"

static const struct option options[] = {{.name = "weight_share_image",
                                         .type = OPTION_REAL,
                                         .minimum = 0.001,
                                         .maximum = 1,
                                         .fallback = "0.85",
                                         .help = "share of an image tower's weight that updates leave alone"},
                                        {.name = "weight_share_text",
                                         .type = OPTION_REAL,
                                         .minimum = 0.001,
                                         .maximum = 1,
                                         .fallback = "0.2",
                                         .help = "the same of the text tower"},
                                        {.name = "feature_share",
                                         .type = OPTION_REAL,
                                         .minimum = 0.001,
                                         .maximum = 1,
                                         .fallback = "0.99",
                                         .help = "share of a task's inputs that later updates leave alone"},
                                        {0}};

struct state {
    struct threads *pool;
    struct subspace *list; /* [deltas' count] */
};

static struct deltas *deltas_of(const struct method_run *run)
{
    return run->model->deltas;
}

static status check(const struct settings *settings, struct error *error)
{
    const unsigned mlp = 1U << DELTA_FC | 1U << DELTA_PROJ;
    return settings->delta.matrices & mlp
               ? error_set(error, ERROR_ARGUMENT,
                           "suite: delta.matrices: keep_lora needs square matrices; leave out fc and proj")
               : OK;
}

static status open_state(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    const struct deltas *d = deltas_of(run);
    TRY(threads_create(&s->pool, run->model->settings.threads, error));
    s->list = xcalloc(d->count, sizeof *s->list);
    for (size_t i = 0; i < d->count; i++)
        s->list[i] = (struct subspace){.width = d->list[i].in, .pool = s->pool};
    return OK;
}

static void close_state(struct method_run *run)
{
    struct state *s = run->state;
    for (size_t i = 0; s->list != NULL && i < deltas_of(run)->count; i++)
        subspace_free(&s->list[i]);
    free(s->list);
    threads_destroy(s->pool);
}

static size_t full_batches(const struct task *task)
{
    size_t batches = dataset_size(task->dataset, SPLIT_TRAIN) / task->settings.batch;
    return batches > 0 ? batches : 1;
}

/* --- Before a task: the gradient of a pass --- */

/* Where a matrix has its gradient among those of all layers, and its start, A and then B; past the last one, their sizes. */
struct place {
    size_t gradient, start;
};

static struct place place_of(const struct deltas *d, size_t index)
{
    struct place p = {0};
    for (size_t i = 0; i < index; i++) {
        const struct linear *linear = d->list[i].linear; /* query, key and value are parts of one */
        p.gradient += i + 1 < d->count && d->list[i + 1].linear == linear ? 0 : linear->out * linear->in;
        p.start += d->settings.rank * (d->list[i].in + d->list[i].out);
    }
    if (index < d->count)
        p.gradient += d->list[index].delta->first * d->list[index].in;
    return p;
}

/* The layers of the deltas get gradients, on the device; NULL: none any more. */
static void lend_gradients(struct deltas *d, float *gradients)
{
    for (size_t i = 0; i < d->count; i++) {
        const struct delta_entry *e = &d->list[i];
        e->linear->weight.gradient =
            gradients != NULL ? gradients + place_of(d, i).gradient - e->delta->first * e->in : NULL;
    }
}

static status add_gradients(struct method_run *run, const struct task *task, struct error *error)
{
    struct model *model = run->model;
    struct batches *batches;
    struct batch batch;
    status result = batches_open_task(&batches, model, run->data, task, 0, full_batches(task), error);
    for (size_t i = 0; result == OK && i < full_batches(task); i++) {
        if (stop_requested(model->stop))
            result = error_set(error, ERROR_STOPPED, "%s: stopped before its first iteration", task->settings.name);
        arena_reset(&model->step_memory);
        NEXT(result, batches_take(batches, &batch, error));
        NEXT(result, classification_loss(run, task, &batch, error));
        batches_advance(batches);
    }
    batches_close(batches);
    return result;
}

static status sum_over_ranks(const struct model *model, float *values, size_t n, struct error *error)
{
    const struct distributed_work *work = &model->work;
    return work->group == NULL
               ? OK
               : model->backend->ops->all_reduce(
                     model->backend,
                     &(struct all_reduce){
                         .group = work->group, .rank = work->rank, .reduction = SUM_FLOATS, .values = values, .n = n},
                     error);
}

static status mean_gradients(struct method_run *run, const struct task *task, struct tensor *gradients,
                             struct error *error)
{
    struct model *model = run->model;
    size_t n = place_of(model->deltas, model->deltas->count).gradient;
    TRY(tensor_take(gradients, run->task_memory, TENSOR_F32, "gradients of weights", 1, &n, error));
    TRY(model->backend->ops->zero(model->backend, gradients->data, tensor_bytes(gradients), error));
    TRY(model_set_step(model, task->index, 0, 0, error));
    lend_gradients(model->deltas, gradients->data);
    status result = add_gradients(run, task, error);
    lend_gradients(model->deltas, NULL);
    NEXT(result, sum_over_ranks(model, gradients->data, n, error));
    NEXT(result, model->backend->ops->weighted_sum(model->backend,
                                                   &(struct weighted_sum){.count = 1,
                                                                          .n = n,
                                                                          .inputs = {gradients->data},
                                                                          .weights = {1},
                                                                          .divisor = (double)full_batches(task),
                                                                          .out = gradients->data},
                                                   error));
    return result;
}

/* --- The start of a task --- */

static status start_subspace(struct method_run *run, size_t index, struct error *error)
{
    const struct delta_entry *e = &deltas_of(run)->list[index];
    double share = options_real(run->options, e->tower == TOWER_IMAGE ? "weight_share_image" : "weight_share_text");
    float *weight = xmalloc(array_size(e->out * e->in, sizeof *weight));
    status result = deltas_read_weight(deltas_of(run), e, weight, error);
    NEXT(result, subspace_start(&((struct state *)run->state)->list[index], weight, e->in, share, error));
    free(weight);
    return result;
}

/* starts: of all matrices, on the host */
static status decompose(struct method_run *run, const float *gradients, float *starts, struct error *error)
{
    struct state *s = run->state;
    const struct deltas *d = deltas_of(run);
    for (size_t i = 0; i < d->count; i++) {
        const struct delta_entry *e = &d->list[i];
        struct place at = place_of(d, i);
        float *a = starts + at.start, *b = a + d->settings.rank * e->in;
        if (s->list[i].rank == 0)
            TRY(start_subspace(run, i, error));
        TRY(subspace_low_rank(&s->list[i], gradients + at.gradient, e->out, d->settings.rank, a, b, error));
    }
    return OK;
}

static status write_starts(struct deltas *d, size_t task, float *starts, struct error *error)
{
    size_t rank = d->settings.rank;
    for (size_t i = 0; i < d->count; i++) {
        const struct delta_entry *e = &d->list[i];
        float *a = starts + place_of(d, i).start, *b = a + rank * e->in;
        TRY(deltas_write(d, e, DELTA_A, 2 * task, a, error));
        TRY(deltas_write(d, e, DELTA_A, 2 * task + 1, a, error));
        TRY(deltas_write(d, e, DELTA_B, 2 * task + 1, b, error));
        for (size_t k = 0; k < rank * e->out; k++)
            b[k] = -b[k];
        TRY(deltas_write(d, e, DELTA_B, 2 * task, b, error));
    }
    return OK;
}

/* The leader's starts reach the other ranks as a sum of which they have zeros. */
static status share_starts(struct method_run *run, float *starts, size_t n, struct error *error)
{
    struct model *model = run->model;
    struct backend *backend = model->backend;
    struct tensor shared;
    if (model->work.group == NULL)
        return OK;
    TRY(tensor_take(&shared, run->task_memory, TENSOR_F32, "starts of deltas", 1, &n, error));
    TRY(backend->ops->upload(backend, shared.data, starts, n * sizeof *starts, error));
    TRY(sum_over_ranks(model, shared.data, n, error));
    return backend->ops->download(backend, starts, shared.data, n * sizeof *starts, error);
}

static status start_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct model *model = run->model;
    const struct arena_mark mark = arena_mark(run->task_memory);
    struct deltas *d = model->deltas;
    struct place all = place_of(d, d->count);
    struct tensor gradients;
    TRY(mean_gradients(run, task, &gradients, error));
    float *host = xmalloc(tensor_bytes(&gradients)), *starts = xcalloc(all.start, sizeof *starts);
    status result = OK;
    if (model->work.rank == 0) {
        result = model->backend->ops->download(model->backend, host, gradients.data, tensor_bytes(&gradients), error);
        NEXT(result, decompose(run, host, starts, error));
    }
    NEXT(result, share_starts(run, starts, all.start, error));
    NEXT(result, write_starts(d, task->index, starts, error));
    free(host);
    free(starts);
    arena_release(run->task_memory, mark);
    return result;
}

/* The rows of the start are zero until they are written, so the first call leaves the model as it was. */
static status begin_task(struct method_run *run, const struct task *task, bool resumed, struct error *error)
{
    struct deltas *d = deltas_of(run);
    size_t start = 2 * task->index;
    if (!resumed) {
        TRY(deltas_begin_task(d, start, start, 0, error));
        TRY(start_task(run, task, error));
    }
    TRY(deltas_begin_task(d, start + 1, start + 1, DELTA_B, error));
    return resumed ? OK : trained_groups_reset(run->model, error);
}

/* --- After a task: the inputs of the layers --- */

/* Sums over the batches of a tower, per block: of the norm before the attention, [n, d], and of the attention, [n, d]. */
struct inputs {
    struct model *model;
    enum tower tower;
    struct tensor sums[CLIP_BLOCKS_MOST][2];
};

/* sum += x, which may be an operand of products */
static status add(struct backend *backend, struct arena *arena, const struct tensor *sum, const struct tensor *x,
                  struct error *error)
{
    struct tensor wide;
    TRY(tensor_take(&wide, arena, TENSOR_F32, "inputs", x->rank, x->shape, error));
    TRY(backend->ops->activate(backend, &(struct activate){.x = matrix_of(x), .out = matrix_of(&wide)}, error));
    return backend->ops->weighted_sum(backend,
                                      &(struct weighted_sum){.count = 2,
                                                             .n = tensor_elements(sum),
                                                             .inputs = {sum->data, wide.data},
                                                             .weights = {1, 1},
                                                             .out = sum->data},
                                      error);
}

static status add_inputs(struct inputs *inputs, const struct tower_pass *pass, struct error *error)
{
    struct model *model = inputs->model;
    struct backend *backend = model->backend;
    struct arena *arena = &model->step_memory;
    for (size_t b = 0; b < model->clip->towers[inputs->tower].count; b++) {
        const struct block *block = &model->clip->towers[inputs->tower].blocks[b];
        const struct block_saved *saved = &pass->blocks[b];
        struct arena_mark mark = arena_mark(arena);
        struct tensor normal;
        TRY(tensor_take(&normal, arena, TENSOR_F32, "layer norm", saved->x.rank, saved->x.shape, error));
        TRY(backend->ops->layer_norm(backend,
                                     &(struct layer_norm){.x = matrix_of(&saved->x),
                                                          .y = matrix_of(&normal),
                                                          .gain = block->ln_1.gain.value,
                                                          .bias = block->ln_1.bias.value},
                                     error));
        TRY(add(backend, arena, &inputs->sums[b][0], &normal, error));
        TRY(add(backend, arena, &inputs->sums[b][1], &saved->attended, error));
        arena_release(arena, mark);
    }
    return OK;
}

static status take_sums(struct inputs *inputs, struct arena *arena, size_t rows, struct error *error)
{
    const size_t shape[2] = {rows, inputs->model->clip->towers[inputs->tower].width};
    struct backend *backend = inputs->model->backend;
    for (size_t b = 0; b < inputs->model->clip->towers[inputs->tower].count; b++)
        for (size_t k = 0; k < 2; k++) {
            struct tensor *sum = &inputs->sums[b][k];
            TRY(tensor_take(sum, arena, TENSOR_F32, "inputs of a layer", 2, shape, error));
            TRY(backend->ops->zero(backend, sum->data, tensor_bytes(sum), error));
        }
    return OK;
}

/* The factor of a mean changes no direction and no share, so the sums stand for it. */
static status extend(struct method_run *run, const struct inputs *inputs, struct error *error)
{
    struct state *s = run->state;
    const struct deltas *d = deltas_of(run);
    struct backend *backend = run->model->backend;
    size_t width = run->model->clip->towers[inputs->tower].width;
    const struct tensor *at_hand = NULL;
    float *rows = xmalloc(tensor_bytes(&inputs->sums[0][0]));
    double *products = xmalloc(array_size(width * width, sizeof *products));
    status result = OK;
    for (size_t i = 0; result == OK && i < d->count; i++) {
        const struct delta_entry *e = &d->list[i];
        const struct tensor *sum = &inputs->sums[e->block][e->matrix == DELTA_OUTPUT];
        if (e->tower != inputs->tower)
            continue;
        if (sum != at_hand) {
            result = backend->ops->download(backend, rows, sum->data, tensor_bytes(sum), error);
            if (result == OK)
                subspace_products(&s->list[i], rows, sum->shape[0], products);
        }
        at_hand = sum;
        NEXT(result, subspace_extend(&s->list[i], products, options_real(run->options, "feature_share"), error));
    }
    free(rows);
    free(products);
    return result;
}

/* Batches of equal size, in an order and with crops of their own epoch. */
static status read_images(struct method_run *run, const struct task *task, struct inputs *inputs, struct error *error)
{
    struct model *model = run->model;
    size_t images = dataset_size(task->dataset, SPLIT_TRAIN);
    const struct loader_settings settings = {.dataset = task->dataset,
                                             .split = SPLIT_TRAIN,
                                             .resolution = (int)model->clip->dimensions.resolution,
                                             .batch = images < task->settings.batch ? images : task->settings.batch,
                                             .shuffle = true,
                                             .augment = true,
                                             .cache = task == &run->data->joint ? NULL : run->data->cache,
                                             .full = true,
                                             .augmentation = task->settings.augmentation,
                                             .seed = model->seed,
                                             .task = (uint32_t)task->index};
    const struct encoding encoding = {.arena = &model->step_memory, .training = true, .whole = true};
    struct batches *batches;
    struct batch batch;
    struct tensor features;
    struct tower_pass *pass = xcalloc(1, sizeof *pass);
    status result = batches_open(&batches, model, run->data, &settings, 0, full_batches(task), error);
    for (size_t i = 0; result == OK && i < full_batches(task); i++) {
        arena_reset(&model->step_memory);
        result = batches_take(batches, &batch, error);
        NEXT(result, clip_encode_images(model->clip, &encoding, &batch.images, pass, &features, error));
        if (result == OK && i == 0)
            result = take_sums(inputs, run->task_memory, pass->batch * pass->positions, error);
        NEXT(result, add_inputs(inputs, pass, error));
        batches_advance(batches);
    }
    batches_close(batches);
    free(pass);
    return result;
}

static status read_prompts(struct method_run *run, struct inputs *inputs, struct error *error)
{
    struct model *model = run->model;
    const struct encoding encoding = {.arena = &model->step_memory, .training = true, .whole = true};
    struct tensor features;
    struct tower_pass *pass = xcalloc(1, sizeof *pass);
    arena_reset(&model->step_memory);
    status result = clip_encode_texts(model->clip, &encoding, &model->classes.texts, pass, &features, error);
    NEXT(result, take_sums(inputs, run->task_memory, pass->batch * pass->positions, error));
    NEXT(result, add_inputs(inputs, pass, error));
    free(pass);
    return result;
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    const struct arena_mark mark = arena_mark(run->task_memory);
    for (int t = 0; t < TOWERS; t++) {
        struct inputs inputs = {.model = run->model, .tower = (enum tower)t};
        if (!deltas_in_tower(deltas_of(run), (enum tower)t))
            continue;
        if (t == TOWER_IMAGE)
            TRY(read_images(run, task, &inputs, error));
        else
            TRY(read_prompts(run, &inputs, error));
        TRY(extend(run, &inputs, error));
        arena_release(run->task_memory, mark);
    }
    return OK;
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    for (size_t i = 0; i < deltas_of(run)->count; i++) {
        struct subspace *u = &s->list[i];
        int32_t rank = (int32_t)u->rank;
        char name[48];
        snprintf(name, sizeof name, "keep_lora.%zu.rank", i);
        TRY(serializer_host(serializer, name, SAFETENSOR_I32, 1, &rank, error));
        if (rank == 0)
            continue;
        if (u->basis == NULL)
            u->basis = xmalloc(array_size(u->width * u->width, sizeof *u->basis));
        u->rank = (size_t)rank;
        snprintf(name, sizeof name, "keep_lora.%zu.basis", i);
        TRY(serializer_host(serializer, name, SAFETENSOR_F64, u->rank * u->width, u->basis, error));
    }
    return OK;
}

const struct method method_keep_lora = {
    .name = "keep_lora",
    .source = "Luo et al., ICLR 2026",
    .formula =
        "W + scale · B A; A: first vectors of the task's gradient without U, fixed; U: vectors of the weight up to "
        "weight_share_image or weight_share_text, and of the inputs of each task up to feature_share",
    .options = options,
    .two_deltas = true,
    .state_size = sizeof(struct state),
    .groups = groups_deltas,
    .check = check,
    .open = open_state,
    .close = close_state,
    .begin_task = begin_task,
    .end_task = end_task,
    .keep = keep};
