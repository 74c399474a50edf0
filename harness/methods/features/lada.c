/* LADA (Luo et al., "LADA: Scalable Label-Specific CLIP Adapter for Continual Learning", ICML 2025, arXiv 2505.23271): every class
 * has vectors beside its text (harness/train/services/label_memory.h). They start as the centres of the class's training features
 * (unit vectors); those of the task's classes are trained, earlier ones stay. With the images of a batch the loss has a feature
 * for each Gaussian of every earlier class, mean + noise of its variance, weighted by its share of the class (equations 9, 10):
 *
 *     loss = mean of w · cross-entropy(100 · x · textᵀ + memory), w = 1 for images, past_weight · share for Gaussians
 *
 * Gaussians are fitted to features that are not normalised, and kept. At test time, as in the public code (test_wo_selector): where
 * the class of the most similar text is learned, learned classes compete by text and vectors, elsewhere the text decides.
 *
 * What the public code (MaolinLuo/LADA) does and this does not: it tunes an AdaptFormer in the text tower with every task and
 * keeps the task's tuned texts; texts here are CLIP's own (without that tuning, the public code itself has 3.2 points of
 * Average and 4.5 of Last less on four tasks in a run that others have published). It trains on random crops and flips, here
 * features of images in the evaluation transform are computed once. It has numbers of epochs per dataset (100 to 1500 steps),
 * here all tasks have `steps`. It is in half precision, here in double on the host, on which a step of X-TAIL's last task takes
 * 70 GFLOP. The schedule, OneCycleLR with its cycle of AdamW's beta1, is the same.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/model/class_features.h"
#include "harness/train/image_pass.h"
#include "harness/train/services/host_step.h"
#include "harness/train/services/label_memory.h"
#include "models/clip/cost.h"

enum { ROWS = 256 /* scored at a time */, DRAWS = 32 /* steps of RNG_CENTRES for a class */ };

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "vectors", 1, 1024, "16", "vectors per class, at most one per training image"),
    OPTION_NUMBER(INTEGER, "gaussians", 1, 1024, "4", "Gaussians kept per class, at most one per training image"),
    OPTION_NUMBER(REAL, "memory_weight", 0, 1e6, "1", "weight of the vectors beside the texts"),
    OPTION_NUMBER(REAL, "sharpness", 0, 1e3, "1", "rate at which a vector's part falls with its distance"),
    OPTION_NUMBER(REAL, "past_weight", 0, 1e6, "64", "weight of an earlier class in the loss, in images"),
    OPTION_NUMBER(REAL, "rate", 0, 10, "0.001", "highest learning rate of the vectors"),
    OPTION_NUMBER(REAL, "decay", 0, 1, "0.0005", "weight decay of the vectors"),
    OPTION_NUMBER(INTEGER, "steps", 2, 1e6, "500", "steps per task"),
    OPTION_NUMBER(INTEGER, "images", 1, 65536, "64", "training images of a step"),
    {0}};

static status open(struct method_run *run, struct error *error)
{
    struct label_memory *m = run->state;
    *m = (struct label_memory){.width = run->model->clip->dimensions.embed,
                               .weight = options_real(run->options, "memory_weight"),
                               .sharpness = options_real(run->options, "sharpness")};
    return threads_create(&m->pool, run->model->settings.threads, error);
}

static void close(struct method_run *run)
{
    struct label_memory *m = run->state;
    label_memory_free(m);
    threads_destroy(m->pool);
}

static void cost(const struct method_run *run, struct method_cost *cost)
{
    double classes = (double)run->data->class_count, width = (double)run->model->clip->dimensions.embed,
           vectors = classes * (double)method_whole(run, "vectors"),
           means = classes * (double)method_whole(run, "gaussians"), rows = means + (double)method_whole(run, "images"),
           steps = (double)(run->data->task_count * method_whole(run, "steps"));
    /* Rows and vectors grow from task to task: a third of the last step's products on average. */
    *cost =
        (struct method_cost){.operations = steps / 3 * 2 * rows * width * (vectors + classes) +
                                           cost_images(&run->model->clip->dimensions, frozen_classes_images(run->data)),
                             .memory = 8 * (rows * (2 * vectors + classes + 2 * width) + 5 * vectors * width),
                             .kept = 8 * width * (vectors + means)};
}

/* --- Learning --- */

/* The training of a task. */
struct lesson {
    struct frozen_rows rows;
    struct arena memory;
    double *raw, *texts; /* [n, width], the features; [classes, width], 100 times the unit vectors */
    uint32_t *order;     /* [n], of the epoch */
    size_t images;       /* of a step */
    struct label_batch batch;
    double *gradient, *moments;
};

/* 100 times the texts of all classes so far. */
static status read_texts(struct method_run *run, const struct task *last, double *texts, struct error *error)
{
    for (size_t k = 0; k <= last->index; k++) {
        const struct task *task = &run->data->tasks[k];
        size_t n = dataset_classes(task->dataset) * run->model->clip->dimensions.embed;
        OWNED float *values = NULL;
        TRY(class_features_host(run->model, task, &values, error));
        for (size_t i = 0; i < n; i++)
            *texts++ = (double)EVALUATION_SCALE * (double)values[i];
    }
    return OK;
}

/* The vectors, or after training the Gaussians, of the task's classes. */
static void describe(struct method_run *run, const struct task *task, const struct lesson *l, bool vectors)
{
    struct label_memory *m = run->state;
    OWNED float *own = xmalloc(array_size(l->rows.n + 1, m->width * sizeof *own));
    OWNED double *rows = xmalloc(array_size(l->rows.n + 1, m->width * sizeof *rows));
    for (size_t class = l->rows.first; class < l->rows.classes; class ++) {
        size_t n = frozen_rows_of_class(&l->rows, class, own);
        frozen_rows_widen(own, n, m->width, vectors, rows);
        struct rng rng = rng_make(run->model->seed, RNG_CENTRES, (uint32_t)task->index,
                                  (uint32_t)(class * DRAWS + (vectors ? 0 : DRAWS / 2)));
        if (vectors)
            label_memory_add(m, rows, n, method_whole(run, "vectors"), rng);
        else
            label_memory_fit(m, class, rows, n, method_whole(run, "gaussians"), rng);
    }
}

/* A row of each Gaussian, then the images of the step, an epoch after the other. */
static void fill_batch(struct method_run *run, const struct task *task, struct lesson *l, size_t step)
{
    const struct label_memory *m = run->state;
    struct label_batch *b = &l->batch;
    size_t per_epoch = (l->rows.n + l->images - 1) / l->images, at = step % per_epoch * l->images,
           end = at + l->images < l->rows.n ? at + l->images : l->rows.n;
    uint32_t number = (uint32_t)task->index;
    struct rng order = rng_make(run->model->seed, RNG_ORDER, number, (uint32_t)(step / per_epoch));
    if (at == 0)
        rng_permutation(&order, l->rows.n, l->order);
    label_memory_draw(m, rng_make(run->model->seed, RNG_SAMPLES, number, (uint32_t)step), b->x);
    for (b->n = 0; b->n < m->means.count; b->n++) {
        b->labels[b->n] = m->means.owners[b->n];
        b->weights[b->n] = options_real(run->options, "past_weight") * m->gaussians[b->n].weight;
    }
    for (; at < end; at++, b->n++) {
        memcpy(b->x + b->n * m->width, l->raw + l->order[at] * m->width, m->width * sizeof *b->x);
        b->labels[b->n] = l->rows.labels[l->order[at]];
        b->weights[b->n] = 1;
    }
    for (size_t i = 0; i < b->n; i++)
        linear_unit(b->x + i * m->width, m->width);
}

static void allocate(const struct method_run *run, struct lesson *l, size_t first)
{
    const struct label_memory *m = run->state;
    size_t most = method_whole(run, "images"), rows = m->means.count + most, count = m->vectors.count;
    l->images = most < l->rows.n ? most : l->rows.n;
    l->order = host_take(&l->memory, l->rows.n, sizeof *l->order);
    l->batch =
        (struct label_batch){.x = host_take(&l->memory, array_size(rows, m->width), sizeof(double)),
                             .labels = host_take(&l->memory, rows, sizeof(int32_t)),
                             .weights = host_take(&l->memory, rows, sizeof(double)),
                             .scores = host_take(&l->memory, array_size(rows, m->classes), sizeof(double)),
                             .work = host_take(&l->memory, array_size(rows, 2 * count + m->width), sizeof(double))};
    l->gradient = host_take(&l->memory, array_size(count - first, m->width), sizeof(double));
    l->moments = host_take(&l->memory, array_size(count - first, 2 * m->width), sizeof(double));
}

static status train(struct method_run *run, const struct task *task, struct lesson *l, size_t first,
                    struct error *error)
{
    struct label_memory *m = run->state;
    const struct one_cycle cycle = {.steps = method_whole(run, "steps"),
                                    .peak = options_real(run->options, "rate"),
                                    .decay = options_real(run->options, "decay")};
    allocate(run, l, first);
    for (size_t step = 0; step < cycle.steps && l->images > 0; step++) {
        if (stop_requested(run->model->stop))
            return error_set(error, ERROR_STOPPED, "%s: stopped while vectors of its classes were trained",
                             task->settings.name);
        fill_batch(run, task, l, step);
        linear_multiply(m->pool, &(struct linear_product){.rows = l->batch.n,
                                                          .columns = m->classes,
                                                          .inner = m->width,
                                                          .a = l->batch.x,
                                                          .b = l->texts,
                                                          .out = l->batch.scores});
        label_memory_loss(m, &l->batch, first, l->gradient);
        label_memory_step(m, first, &cycle, step, l->gradient, l->moments);
    }
    return OK;
}

static void lesson_free(struct lesson *l)
{
    frozen_rows_free(&l->rows);
    arena_destroy(&l->memory);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct label_memory *m = run->state;
    SCOPED(lesson_free) struct lesson l = {0};
    size_t before = m->classes, first = m->vectors.count;
    status result = arena_create(&l.memory, 0, "lesson", error);
    NEXT(result, frozen_rows_read(&l.rows, run, task, error));
    if (result == OK) {
        l.raw = host_take(&l.memory, array_size(l.rows.n, m->width), sizeof *l.raw);
        l.texts = host_take(&l.memory, array_size(l.rows.classes, m->width), sizeof *l.texts);
        frozen_rows_widen(l.rows.features, l.rows.n, m->width, false, l.raw);
        describe(run, task, &l, true);
        result = read_texts(run, task, l.texts, error);
        NEXT(result, train(run, task, &l, first, error));
    }
    if (result == OK)
        describe(run, task, &l, false);
    else
        label_memory_cut(m, before); /* the task begins again */
    return result;
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    return label_memory_keep(run->state, serializer, error);
}

/* --- Scores --- */

static status scores(struct method_run *run, const struct task *task, const float *features, size_t n, size_t classes,
                     float *scores, struct error *error)
{
    const struct label_memory *m = run->state;
    size_t first = frozen_classes_column(run, task), known = m->classes > first ? m->classes - first : 0;
    OWNED double *x = xmalloc(array_size(ROWS, m->width * sizeof *x)),
                 *affinities = xmalloc(array_size(ROWS, (m->vectors.count + 1) * sizeof *affinities)),
                 *own = xmalloc(array_size(ROWS, (m->classes + 1) * sizeof *own));
    known = known < classes ? known : classes;
    for (size_t done = 0; done < n && known > 0; done += ROWS) {
        size_t count = n - done < ROWS ? n - done : ROWS;
        frozen_rows_widen(features + done * m->width, count, m->width, true, x);
        memset(own, 0, count * m->classes * sizeof *own);
        label_memory_scores(m, x, count, affinities, own);
        for (size_t i = 0; i < count; i++) {
            float *row = scores + (done + i) * classes;
            double *mine = own + i * m->classes + first;
            for (size_t c = 0; c < known; c++)
                mine[c] += (double)row[c];
            frozen_classes_decide(row, classes, known, mine);
        }
    }
    return OK;
}

const struct method method_lada = {.name = "lada",
                                   .source = "LADA, ICML 2025, without its tuned texts",
                                   .formula = "scores = 100 · x · text + memory_weight · Σ over a class's vectors w of "
                                              "exp(−sharpness · (1 − x · w)) where the "
                                              "text names a learned class, else by text",
                                   .options = options,
                                   .state_size = sizeof(struct label_memory),
                                   .check = frozen_classes_once,
                                   .open = open,
                                   .close = close,
                                   .end_task = end_task,
                                   .scores = scores,
                                   .cost = cost,
                                   .keep = keep};
