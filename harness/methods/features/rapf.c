/* RAPF (Huang et al., "Class-Incremental Learning with CLIP: Adaptive Representation Adjustment and Parameter Fusion", ECCV 2024, arXiv
 * 2407.14143): a linear layer W behind the frozen image tower, which all tasks train (services/projection.h). A step takes images of the
 * task and draws from the Gaussians of a few earlier classes, and for every earlier class whose text is nearer than `near` to that of
 * a class of the task twice as many draws, which the layer is to keep from that class:
 *
 *     loss = cross-entropy(100 · u · textᵀ) + mean of max(0, margin − u · (text of the earlier class − text of the task's)),
 *     u = W x / ‖W x‖
 *
 * in Adam, whose rate falls tenfold after 4/15 and 10/15 of the epochs. After a task the change of W is taken back in part, the less
 * the larger its entries are in the basis of the earlier W (`fusion`), and Gaussians are fitted to the task's features.
 *
 * As in the public code (linlany/RAPF at 81d41df): W starts random; a Gaussian's covariance has 1e-4 added to its diagonal, and with
 * `widen` its mean variance and mean covariance; the margin is 0.1, though a file of settings has another that nothing reads. That
 * code runs the towers in half precision, here they are in single, and W is in double on the host. Its number of earlier classes in
 * a step is a constant for each dataset, here `classes`. Its images are in the evaluation transform there, too. It has classes that
 * were learned and no others; here zero-shot CLIP answers for an image whose most similar text is a class that was not learned,
 * as in simple_cil.c. A class of one image has the covariance 1e-4, where that code makes NaN; one of none is not drawn.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/model/class_features.h"
#include "harness/train/image_pass.h"
#include "harness/train/services/gaussians.h"
#include "harness/train/services/host_step.h"
#include "harness/train/services/projection.h"
#include "models/clip/cost.h"

enum { ROWS = 256 /* scored at a time */ };

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "epochs", 1, 10000, "15", "epochs per task"),
    OPTION_NUMBER(INTEGER, "images", 1, 65536, "100", "training images of a step"),
    OPTION_NUMBER(REAL, "rate", 0, 10, "0.001", "learning rate of the layer"),
    OPTION_NUMBER(INTEGER, "classes", 0, 65536, "2", "earlier classes that a step draws from, in turn"),
    OPTION_NUMBER(INTEGER, "draws", 0, 65536, "20",
                  "draws from each of them; twice as many for each pair of near classes"),
    OPTION_NUMBER(REAL, "near", 0, 2, "0.55",
                  "distance of unit texts below which an earlier class and one of the task are a pair"),
    OPTION_NUMBER(REAL, "margin", 0, 2, "0.1", "margin of cosines that draws of a pair are to have"),
    OPTION_NUMBER(REAL, "fusion", 0, 1, "0.6", "share of a task's change that stays at least; 1: all of it"),
    OPTION(BOOLEAN, "widen", "no", "adds to each covariance its mean variance and mean covariance"),
    {0}};

struct state {
    struct projection layer;
    struct projection_texts texts; /* of the learned classes */
    size_t count;
    int32_t *owners;  /* [count], of the Gaussians: classes */
    float *gaussians; /* [count, gaussian_values(width)] */
};

static status open(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    size_t width = run->model->clip->dimensions.embed;
    struct rng rng = rng_make(run->model->seed, RNG_DIRECTIONS, 0, 0);
    s->layer = (struct projection){
        .width = width, .inputs = width, .weights = xmalloc(array_size(width, width * sizeof(double)))};
    for (size_t i = 0; i < width * width; i++) /* PyTorch's initial values of a linear layer */
        s->layer.weights[i] = (2 * (double)rng_uniform(&rng, i) - 1) / sqrt((double)width);
    return threads_create(&s->layer.pool, run->model->settings.threads, error);
}

static void close(struct method_run *run)
{
    struct state *s = run->state;
    free(s->layer.weights);
    free(s->texts.rows);
    free(s->texts.columns);
    free(s->owners);
    free(s->gaussians);
    threads_destroy(s->layer.pool);
}

/* Draws of pairs, whose number is not known, are left out. */
static void cost(const struct method_run *run, struct method_cost *cost)
{
    double classes = (double)run->data->class_count, width = (double)run->model->clip->dimensions.embed,
           images = (double)method_whole(run, "images"),
           drawn = (double)(method_whole(run, "classes") * method_whole(run, "draws")),
           all = (double)frozen_classes_images(run->data), values = (double)gaussian_values((size_t)width),
           steps = (double)method_whole(run, "epochs") * (all / images + (double)run->data->task_count);
    *cost = (struct method_cost){
        .operations = steps * ((images + drawn) * 4 * width * (width + classes / 2) + drawn * width * width) +
                      classes * width * width * width + cost_images(&run->model->clip->dimensions, (size_t)all),
        .memory = 8 * (8 * width * width + (images + drawn) * (5 * width + classes) + 2 * classes * width) +
                  4 * classes * values,
        .kept = 8 * width * (width + classes) + 4 * classes * values};
}

/* --- Learning --- */

/* 100 times the unit texts of the task's classes, behind those of earlier ones. */
static status add_texts(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    struct projection_texts *t = &s->texts;
    size_t width = s->layer.width, before = t->classes, n = before + dataset_classes(task->dataset);
    OWNED float *values = NULL;
    TRY(class_features_host(run->model, task, &values, error));
    t->rows = xrealloc(t->rows, array_size(n, width * sizeof *t->rows));
    t->columns = xrealloc(t->columns, array_size(n, width * sizeof *t->columns));
    for (size_t i = before * width; i < n * width; i++)
        t->rows[i] = (double)EVALUATION_SCALE * (double)values[i - before * width];
    for (size_t i = 0; i < n * width; i++)
        t->columns[i % width * n + i / width] = t->rows[i];
    t->classes = n;
    return OK;
}

/* The training of a task. */
struct lesson {
    struct frozen_rows rows;
    struct arena memory;
    uint32_t *images, *turns; /* [rows.n], [count]: the orders of an epoch */
    size_t pairs;
    int32_t *earlier, *later; /* [pairs]: a Gaussian, a class of the task */
    struct projection_batch batch;
    double *before, *gradient, *moments; /* before: the layer */
};

static void find_pairs(const struct method_run *run, struct lesson *l)
{
    const struct state *s = run->state;
    size_t width = s->layer.width, classes = s->texts.classes;
    double most = options_real(run->options, "near") * (double)EVALUATION_SCALE;
    for (size_t g = 0; g < s->count; g++)
        for (size_t c = l->rows.first; c < classes; c++) {
            const double *a = s->texts.rows + (size_t)s->owners[g] * width, *b = s->texts.rows + c * width;
            double sum = 0;
            for (size_t k = 0; k < width; k++)
                sum += (a[k] - b[k]) * (a[k] - b[k]);
            if (!(sqrt(sum) < most))
                continue;
            GROW(l->earlier, l->pairs);
            GROW(l->later, l->pairs);
            l->earlier[l->pairs] = (int32_t)g;
            l->later[l->pairs++] = (int32_t)c;
        }
}

static void allocate(const struct method_run *run, struct lesson *l)
{
    const struct state *s = run->state;
    size_t width = s->layer.width, square = array_size(width, width),
           n = method_whole(run, "images") + (method_whole(run, "classes") + 2 * l->pairs) * method_whole(run, "draws");
    l->images = host_take(&l->memory, l->rows.n, sizeof *l->images);
    l->turns = host_take(&l->memory, s->count, sizeof *l->turns);
    l->batch = (struct projection_batch){
        .x = host_take(&l->memory, array_size(n, width), sizeof(double)),
        .labels = host_take(&l->memory, n, sizeof(int32_t)),
        .others = host_take(&l->memory, n, sizeof(int32_t)),
        .work = host_take(&l->memory, array_size(n, 4 * width + s->texts.classes + 1), sizeof(double))};
    l->before = host_take(&l->memory, square, sizeof *l->before);
    memcpy(l->before, s->layer.weights, square * sizeof *l->before);
    l->gradient = host_take(&l->memory, square, sizeof *l->gradient);
    l->moments = host_take(&l->memory, 2 * square, sizeof *l->moments);
}

static void draw(const struct state *s, struct lesson *l, size_t gaussian, int32_t other, size_t count,
                 const struct rng *rng)
{
    struct projection_batch *b = &l->batch;
    size_t width = s->layer.width;
    for (size_t i = 0; i < count; i++, b->n++) {
        for (size_t k = b->n * width; k < (b->n + 1) * width; k++)
            b->x[k] = (double)rng_normal(rng, k);
        gaussian_draw(s->gaussians + gaussian * gaussian_values(width), width, b->x + b->n * width);
        b->labels[b->n] = s->owners[gaussian];
        b->others[b->n] = other;
    }
}

/* Images, draws from earlier classes in turn, draws from pairs. */
static void fill_batch(const struct method_run *run, const struct task *task, struct lesson *l, size_t step)
{
    const struct state *s = run->state;
    struct projection_batch *b = &l->batch;
    size_t width = s->layer.width, images = method_whole(run, "images"), per_epoch = (l->rows.n + images - 1) / images,
           epoch = step / per_epoch, place = step % per_epoch, at = place * images, draws = method_whole(run, "draws"),
           classes = s->count > 0 ? method_whole(run, "classes") : 0;
    uint32_t number = (uint32_t)task->index;
    struct rng order = rng_make(run->model->seed, RNG_ORDER, number, (uint32_t)epoch),
               turns = rng_make(run->model->seed, RNG_ORDER, number, (uint32_t)(method_whole(run, "epochs") + epoch)),
               normal = rng_make(run->model->seed, RNG_SAMPLES, number, (uint32_t)step);
    if (place == 0) {
        rng_permutation(&order, l->rows.n, l->images);
        rng_permutation(&turns, s->count, l->turns);
    }
    for (b->n = 0; b->n < images && at < l->rows.n; at++, b->n++) {
        frozen_rows_widen(l->rows.features + l->images[at] * width, 1, width, false, b->x + b->n * width);
        b->labels[b->n] = l->rows.labels[l->images[at]];
    }
    for (size_t j = 0; j < classes; j++)
        draw(s, l, l->turns[(place * classes + j) % s->count], -1, draws, &normal);
    b->labelled = b->n;
    for (size_t j = 0; j < l->pairs; j++)
        draw(s, l, (size_t)l->earlier[j], l->later[j], 2 * draws, &normal);
}

static status train(struct method_run *run, const struct task *task, struct lesson *l, struct error *error)
{
    struct state *s = run->state;
    size_t epochs = method_whole(run, "epochs"), images = method_whole(run, "images"),
           per_epoch = (l->rows.n + images - 1) / images;
    for (size_t step = 0; step < epochs * per_epoch; step++) {
        if (stop_requested(run->model->stop))
            return error_set(error, ERROR_STOPPED, "%s: stopped while its layer was trained", task->settings.name);
        size_t epoch = step / per_epoch, falls = (15 * epoch >= 4 * epochs) + (15 * epoch >= 10 * epochs);
        struct host_adam adam = {.rate = options_real(run->options, "rate") * pow(0.1, (double)falls), .beta1 = 0.9};
        fill_batch(run, task, l, step);
        projection_loss(&s->layer, &s->texts, &l->batch, options_real(run->options, "margin"), l->gradient);
        host_adam(s->layer.weights, s->layer.width * s->layer.width, l->gradient, l->moments, &adam, step);
    }
    return OK;
}

/* The Gaussians of the task's classes. */
static status describe(struct method_run *run, const struct lesson *l, struct error *error)
{
    struct state *s = run->state;
    const struct gaussian_rule rule = {
        .width = s->layer.width, .ridge = 1e-4, .unbiased = true, .widened = options_boolean(run->options, "widen")};
    size_t values = gaussian_values(rule.width), most = s->count + l->rows.classes - l->rows.first;
    OWNED float *rows = xmalloc(array_size(l->rows.n + 1, rule.width * sizeof *rows));
    s->owners = xrealloc(s->owners, array_size(most, sizeof *s->owners));
    s->gaussians = xrealloc(s->gaussians, array_size(most, values * sizeof *s->gaussians));
    for (size_t class = l->rows.first; class < l->rows.classes; class ++) {
        size_t n = frozen_rows_of_class(&l->rows, class, rows);
        if (n == 0)
            continue;
        TRY(gaussian_fit(s->gaussians + s->count * values, &rule, rows, n, s->layer.pool, error));
        s->owners[s->count++] = (int32_t) class;
    }
    return OK;
}

static void lesson_free(struct lesson *l)
{
    frozen_rows_free(&l->rows);
    free(l->earlier);
    free(l->later);
    arena_destroy(&l->memory);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    SCOPED(lesson_free) struct lesson l = {0};
    size_t classes = s->texts.classes, count = s->count;
    status result = arena_create(&l.memory, 0, "lesson", error);
    NEXT(result, frozen_rows_read(&l.rows, run, task, error));
    NEXT(result, add_texts(run, task, error));
    if (result == OK) {
        find_pairs(run, &l);
        allocate(run, &l);
        result = train(run, task, &l, error);
        if (task->index > 0)
            NEXT(result, projection_fuse(&s->layer, l.before, options_real(run->options, "fusion"), error));
        NEXT(result, describe(run, &l, error));
        if (result != OK)
            memcpy(s->layer.weights, l.before, s->layer.width * s->layer.width * sizeof *l.before);
    }
    if (result != OK) { /* the task begins again */
        s->texts.classes = classes;
        s->count = count;
    }
    return result;
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    struct projection_texts *t = &s->texts;
    size_t width = s->layer.width, values = gaussian_values(width);
    int64_t counts[] = {(int64_t)t->classes, (int64_t)s->count};
    TRY(serializer_host(serializer, "rapf.counts", SAFETENSOR_I64, 2, counts, error));
    if (!serializer->saving) {
        t->classes = (size_t)counts[0];
        s->count = (size_t)counts[1];
        t->rows = xrealloc(t->rows, array_size(t->classes + 1, width * sizeof *t->rows));
        s->owners = xrealloc(s->owners, array_size(s->count + 1, sizeof *s->owners));
        s->gaussians = xrealloc(s->gaussians, array_size(s->count + 1, values * sizeof *s->gaussians));
    }
    TRY(serializer_host(serializer, "rapf.layer", SAFETENSOR_F64, width * width, s->layer.weights, error));
    if (t->classes > 0)
        TRY(serializer_host(serializer, "rapf.texts", SAFETENSOR_F64, t->classes * width, t->rows, error));
    if (s->count == 0)
        return OK;
    TRY(serializer_host(serializer, "rapf.owners", SAFETENSOR_I32, s->count, s->owners, error));
    return serializer_host(serializer, "rapf.gaussians", SAFETENSOR_F32, s->count * values, s->gaussians, error);
}

/* --- Scores --- */

static status scores(struct method_run *run, const struct task *task, const float *features, size_t n, size_t classes,
                     float *scores, struct error *error)
{
    const struct state *s = run->state;
    size_t width = s->layer.width, learned = s->texts.classes, first = frozen_classes_column(run, task),
           known = learned > first ? learned - first : 0;
    OWNED double *x = xmalloc(array_size(ROWS, 2 * width * sizeof *x)),
                 *own = xmalloc(array_size(ROWS, (learned + 1) * sizeof *own));
    known = known < classes ? known : classes;
    for (size_t done = 0; done < n && known > 0; done += ROWS) {
        size_t count = n - done < ROWS ? n - done : ROWS;
        frozen_rows_widen(features + done * width, count, width, false, x);
        projection_scores(&s->layer, &s->texts, x, count, x + ROWS * width, own);
        for (size_t i = 0; i < count; i++)
            frozen_classes_decide(scores + (done + i) * classes, classes, known, own + i * learned + first);
    }
    return OK;
}

const struct method method_rapf = {
    .name = "rapf",
    .source = "RAPF, ECCV 2024",
    .formula =
        "scores = 100 · W x / ‖W x‖ · text where zero-shot p names a learned class, else p; W by cross-entropy of "
        "images and of draws from earlier classes, and a margin between texts nearer than `near`; W ← W₀ + "
        "U (min(1, |D| / max |D| + fusion) ∘ D), D = Uᵀ (W − W₀), W₀ = U S Vᵀ",
    .options = options,
    .state_size = sizeof(struct state),
    .check = frozen_classes_once,
    .open = open,
    .close = close,
    .end_task = end_task,
    .scores = scores,
    .cost = cost,
    .keep = keep};
