/* ENGINE (Zhou et al., "External Knowledge Injection for CLIP-Based Class-Incremental Learning", ICCV 2025, arXiv 2503.08510): behind
 * each frozen tower every task adds a linear layer with a bias to those of earlier tasks, which stay: U x = Σ_t (W_t x + b_t), V alike.
 * A step takes images of the task, and for every earlier class the mean of its features with noise, each beside the text of its
 * class (services/alignment.h):
 *
 *     loss = ½ (C(s · u vᵀ) + C(s · v uᵀ)) + view_weight · C(u aᵀ) + text_weight · C(v rᵀ)
 *
 * with u = U x / ‖U x‖, v = V t / ‖V t‖, unit features a of another view of the image and r of another text of its class, in SGD with a
 * cosine over the epochs. The answer is the class of the highest (1 − statistics) · u · v̄ + statistics · z, v̄ the unit mean of v over
 * the class's templates, z a discriminant analysis of unit features, a row of length 1.
 *
 * Other texts are descriptions of the class beside a random other one, which a language model wrote (`descriptions`:
 * services/descriptions.h); the other class may be one of a later task, as in the public code. With them the five classes of the highest
 * u · v̄, of those that the image is compared with, are ranked again (alignment_rank). Without that file they are the class's other
 * templates, or its own text where there is one template, and nothing is ranked again.
 *
 * What the public code (LAMDA-CL/ICCV25-ENGINE at 8803d66) does and this does not: it draws one description of a pair at a time, in a
 * test three, where the mean of the pair's features stands here. Another view is the normalised image there, with noise of deviation
 * 0.25 and cut off below 0 and above 1; here it is the image with left and right exchanged. The discriminant analysis is on features
 * before the projection there, here it is on CLIP's features. Images are in the evaluation transform there, too.
 *
 * As there: s is 4.6, for that code multiplies by the logarithm that CLIP stores, and not by 100; two images of one class are each
 * other's wrong answer. Layers of earlier tasks stay, as the paper has it; with PyTorch before 2.0 that code's weight decay goes on
 * in them, because gradients that are set to zero are not absent. Where zero-shot CLIP's class is not learned, it answers, as in simple_cil.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/scope.h"
#include "harness/methods/methods.h"
#include "harness/model/class_features.h"
#include "harness/train/image_pass.h"
#include "harness/train/services/alignment.h"
#include "harness/train/services/descriptions.h"
#include "harness/train/services/host_step.h"
#include "models/clip/cost.h"

enum { ROWS = 256 /* scored at a time */, TOP = 5 /* classes ranked again */, IMAGES = 0, TEXTS = 1, SIDES = 2 };

static const struct option options[] = {
    OPTION_NUMBER(INTEGER, "epochs", 1, 10000, "10", "epochs per task"),
    OPTION_NUMBER(INTEGER, "images", 1, 65536, "64", "training images of a step"),
    OPTION_NUMBER(REAL, "rate", 0, 10, "0.05", "highest learning rate"),
    OPTION_NUMBER(REAL, "decay", 0, 1, "0.05", "weight decay of the task's layers"),
    OPTION_NUMBER(REAL, "noise", 0, 100, "0.25", "deviation of the noise on mean features of earlier classes"),
    OPTION_NUMBER(REAL, "view_weight", 0, 1e6, "0.5", "weight of the loss of images and their other views"),
    OPTION_NUMBER(REAL, "text_weight", 0, 1e6, "2", "weight of the loss of texts and other texts of their classes"),
    OPTION_NUMBER(REAL, "statistics", 0, 1, "0.8", "share of the discriminant analysis in the scores"),
    OPTION(FILE, "descriptions", NULL,
           "descriptions of classes in JSON, as in the public code's folder chat; none: other templates"),
    OPTION_NUMBER(REAL, "rank_weight", 0, 1, "0.5", "share of the descriptions in the scores of the five best classes"),
    {0}};

struct state {
    size_t width, classes;
    struct projection layers[SIDES]; /* of all tasks together */
    struct discriminant analysis;
    int32_t *prompts;            /* [classes + 1]: of each class, the number of its first one; at last their number */
    float *texts;                /* [prompts, width], not normalised */
    double *centres;             /* [classes, width]: mean features */
    double *answers;             /* [classes, width]: v̄ */
    struct json_t *descriptions; /* NULL: none */
    float *pairs;                /* [classes, all classes of the run, width]: of descriptions */
    struct threads *pool;
};

static status open(struct method_run *run, struct error *error)
{
    struct state *s = run->state;
    s->width = s->analysis.width = run->model->clip->dimensions.embed;
    s->prompts = xcalloc(1, sizeof *s->prompts);
    TRY(threads_create(&s->pool, run->model->settings.threads, error));
    for (size_t k = 0; k < SIDES; k++)
        s->layers[k] = (struct projection){.width = s->width,
                                           .inputs = s->width + 1,
                                           .weights = xcalloc(array_size(s->width, s->width + 1), sizeof(double)),
                                           .pool = s->pool};
    const char *path = options_text(run->options, "descriptions");
    return path == NULL || descriptions_read(&s->descriptions, path, error) == OK
               ? OK
               : error_context(error, "method.descriptions");
}

static void close(struct method_run *run)
{
    struct state *s = run->state;
    for (size_t k = 0; k < SIDES; k++)
        free(s->layers[k].weights);
    discriminant_free(&s->analysis);
    free(s->prompts);
    free(s->texts);
    free(s->centres);
    free(s->answers);
    free(s->pairs);
    descriptions_close(s->descriptions);
    threads_destroy(s->pool);
}

/* Of descriptions, five texts of every pair. */
static void cost(const struct method_run *run, struct method_cost *cost)
{
    const struct clip_dimensions *d = &run->model->clip->dimensions;
    bool described = options_text(run->options, "descriptions") != NULL;
    double classes = (double)run->data->class_count, width = (double)d->embed,
           images = (double)method_whole(run, "images"), rows = images + classes, square = width * width,
           all = (double)frozen_classes_images(run->data),
           steps = (double)method_whole(run, "epochs") * (all / images + (double)run->data->task_count),
           pairs = described ? 4 * classes * classes * width : 0,
           texts = described ? 5 * classes * classes * cost_texts(d, 1, d->context) : 0;
    *cost = (struct method_cost){
        .operations = steps * (images + classes / 2) * (8 * square + 6 * (images + classes / 2) * width) +
                      2 * all * square + 2 * cost_images(d, (size_t)all) + texts,
        .memory = 8 * (12 * square + rows * (10 * width + 3 * rows) + 4 * classes * width + all * width) + pairs,
        .kept = 8 * (3 * square + 3 * classes * width) + pairs};
}

/* --- Learning --- */

/* The input of a layer, whose last value is the bias's. */
static void put_row(double *out, const float *row, size_t width)
{
    frozen_rows_widen(row, 1, width, false, out);
    out[width] = 1;
}

/* v̄ of the learned classes. */
static void answer(struct state *s)
{
    size_t width = s->width;
    OWNED double *t = xmalloc(array_size(2 * width + 1, sizeof *t));
    double *v = t + width + 1;
    s->answers = xrealloc(s->answers, array_size(s->classes + 1, width * sizeof *s->answers));
    memset(s->answers, 0, s->classes * width * sizeof *s->answers);
    for (size_t c = 0; c < s->classes; c++) {
        double *out = s->answers + c * width;
        for (int32_t p = s->prompts[c]; p < s->prompts[c + 1]; p++) {
            put_row(t, s->texts + (size_t)p * width, width);
            projection_apply(&s->layers[TEXTS], t, 1, v, NULL);
            for (size_t k = 0; k < width; k++)
                out[k] += v[k];
        }
        linear_unit(out, width);
    }
}

static void widen(struct state *s, size_t classes, size_t prompts, size_t all)
{
    if (s->descriptions != NULL)
        s->pairs = xrealloc(s->pairs, array_size(classes + 1, array_size(all, s->width * sizeof *s->pairs)));
    s->prompts = xrealloc(s->prompts, array_size(classes + 1, sizeof *s->prompts));
    s->texts = xrealloc(s->texts, array_size(prompts + 1, s->width * sizeof *s->texts));
    s->centres = xrealloc(s->centres, array_size(classes + 1, s->width * sizeof *s->centres));
}

/* The training of a task. */
struct lesson {
    struct frozen_rows rows; /* twice the images, the mirrored ones behind */
    struct arena memory;
    size_t n, first, classes;
    uint32_t *order; /* [n], of the epoch */
    struct alignment_batch batch;
    double *past[SIDES], *own[SIDES], *gradients[SIDES], *velocity[SIDES];
};

static status encode_descriptions(struct method_run *run, const struct lesson *l, struct error *error)
{
    struct state *s = run->state;
    size_t all = run->data->class_count, n = 0;
    OWNED const char **names = xcalloc(all + 1, sizeof *names);
    status result = OK;
    for (size_t t = 0; t < run->data->task_count; t++)
        for (size_t c = 0; c < dataset_classes(run->data->tasks[t].dataset); c++)
            names[n++] = dataset_class_name(run->data->tasks[t].dataset, c);
    for (size_t c = l->first; result == OK && c < l->classes; c++)
        result = descriptions_encode(s->descriptions, run->model, names[c], names, all, s->pairs + c * all * s->width,
                                     error);
    return result == OK ? OK : error_context(error, "method.descriptions");
}

/* Texts and mean features of the task's classes, which are not learned yet. */
static status describe(struct method_run *run, const struct task *task, struct lesson *l, struct error *error)
{
    struct state *s = run->state;
    size_t width = s->width, templates = dataset_templates(task->dataset), before = (size_t)s->prompts[l->first],
           prompts = class_prompts(task);
    OWNED double *counts = xcalloc(l->classes + 1, sizeof *counts);
    widen(s, l->classes, before + prompts, run->data->class_count);
    memset(s->centres + l->first * width, 0, (l->classes - l->first) * width * sizeof *s->centres);
    for (size_t c = l->first; c < l->classes; c++)
        s->prompts[c + 1] = s->prompts[c] + (int32_t)templates;
    for (size_t i = 0; i < l->n; i++) {
        size_t c = (size_t)l->rows.labels[i];
        counts[c]++;
        for (size_t k = 0; k < width; k++)
            s->centres[c * width + k] += (double)l->rows.features[i * width + k];
    }
    for (size_t c = l->first; c < l->classes; c++)
        for (size_t k = 0; k < width; k++)
            s->centres[c * width + k] /= fmax(counts[c], 1);
    TRY(text_features_host(run->model, task->test_prompts, prompts, s->texts + before * width, error));
    return s->descriptions != NULL ? encode_descriptions(run, l, error) : OK;
}

static void allocate(struct method_run *run, const struct task *task, struct lesson *l)
{
    const struct state *s = run->state;
    size_t width = s->width, layer = array_size(width, width + 1), n = method_whole(run, "images") + l->first;
    l->order = host_take(&l->memory, l->n, sizeof *l->order);
    l->batch = (struct alignment_batch){.x = {host_take(&l->memory, array_size(n, width + 1), sizeof(double)),
                                              host_take(&l->memory, array_size(n, width + 1), sizeof(double))},
                                        .views = host_take(&l->memory, array_size(n, width), sizeof(double)),
                                        .references = host_take(&l->memory, array_size(n, width), sizeof(double)),
                                        .work = host_take(&l->memory, alignment_work(n, width), sizeof(double))};
    for (size_t k = 0; k < SIDES; k++) {
        struct rng rng = rng_make(run->model->seed, RNG_DIRECTIONS, (uint32_t)task->index, (uint32_t)k);
        l->past[k] = host_take(&l->memory, layer, sizeof(double));
        memcpy(l->past[k], s->layers[k].weights, layer * sizeof(double));
        l->own[k] = host_take(&l->memory, layer, sizeof(double));
        l->gradients[k] = host_take(&l->memory, layer, sizeof(double));
        l->velocity[k] = host_take(&l->memory, layer, sizeof(double));
        for (size_t i = 0; i < layer; i++) /* PyTorch's initial values of a linear layer */
            l->own[k][i] = (2 * (double)rng_uniform(&rng, i) - 1) / sqrt((double)width);
    }
}

/* The description of a class beside a random other one, or the next one that has any. */
static const float *describe_pair(const struct state *s, size_t class, size_t all, const struct rng *rng, size_t i)
{
    size_t other = rng_below(rng, i, (uint32_t)all);
    const float *pair = NULL;
    bool empty = true;
    for (size_t tries = 0; empty && tries < all; tries++, other = (other + 1) % all) {
        pair = s->pairs + (class * all + other) * s->width;
        for (size_t k = 0; empty && k < s->width; k++)
            empty = pair[k] == 0;
    }
    return pair;
}

/* The text of row i, the first of its class, and another one. */
static void put_text(const struct state *s, struct alignment_batch *b, size_t i, size_t class, size_t all,
                     const struct rng *rng)
{
    size_t width = s->width, first = (size_t)s->prompts[class], count = (size_t)s->prompts[class + 1] - first;
    const float *text = s->texts + first * width, *other = text;
    if (s->descriptions != NULL)
        other = describe_pair(s, class, all, rng, i);
    else if (count > 1)
        other += (1 + rng_below(rng, i, (uint32_t)(count - 1))) * width;
    put_row(b->x[TEXTS] + i * (width + 1), text, width);
    frozen_rows_widen(other, 1, width, true, b->references + i * width);
}

/* Images, then a row of every earlier class that had any. */
static void fill_batch(const struct method_run *run, const struct task *task, struct lesson *l, size_t epoch,
                       size_t place, size_t step)
{
    const struct state *s = run->state;
    struct alignment_batch *b = &l->batch;
    size_t width = s->width, images = method_whole(run, "images");
    uint64_t seed = run->model->seed;
    uint32_t number = (uint32_t)task->index, at = (uint32_t)step;
    struct rng order = rng_make(seed, RNG_ORDER, number, (uint32_t)epoch),
               texts = rng_make(seed, RNG_SENTENCES, number, at), normal = rng_make(seed, RNG_SAMPLES, number, at);
    if (place == 0)
        rng_permutation(&order, l->n, l->order);
    b->n = 0;
    for (size_t i = place * images; i < l->n && b->n < images; i++, b->n++) {
        size_t image = l->order[i];
        put_row(b->x[IMAGES] + b->n * (width + 1), l->rows.features + image * width, width);
        frozen_rows_widen(l->rows.features + (l->n + image) * width, 1, width, true, b->views + b->n * width);
        put_text(s, b, b->n, (size_t)l->rows.labels[image], run->data->class_count, &texts);
    }
    b->images = b->n;
    for (size_t c = 0; c < l->first; c++) {
        double *row = b->x[IMAGES] + b->n * (width + 1), square = 0;
        for (size_t k = 0; k < width; k++) {
            double centre = s->centres[c * width + k];
            square += centre * centre;
            row[k] = centre + options_real(run->options, "noise") * (double)rng_normal(&normal, c * width + k);
        }
        row[width] = 1;
        if (square > 0)
            put_text(s, b, b->n++, c, run->data->class_count, &texts);
    }
}

static void add_layers(struct state *s, const struct lesson *l)
{
    for (size_t k = 0; k < SIDES; k++)
        for (size_t i = 0; i < s->width * (s->width + 1); i++)
            s->layers[k].weights[i] = l->past[k][i] + l->own[k][i];
}

static status train(struct method_run *run, const struct task *task, struct lesson *l, struct error *error)
{
    struct state *s = run->state;
    const struct alignment_rule rule = {.scale = log((double)EVALUATION_SCALE),
                                        .view_weight = options_real(run->options, "view_weight"),
                                        .reference_weight = options_real(run->options, "text_weight")};
    size_t epochs = method_whole(run, "epochs"), images = method_whole(run, "images"), step = 0;
    add_layers(s, l);
    for (size_t epoch = 0; epoch < epochs; epoch++)
        for (size_t place = 0; place * images < l->n; place++, step++) {
            double rate = options_real(run->options, "rate") / 2 * (1 + cos(M_PI * (double)epoch / (double)epochs));
            if (stop_requested(run->model->stop))
                return error_set(error, ERROR_STOPPED, "%s: stopped while its layers were trained",
                                 task->settings.name);
            fill_batch(run, task, l, epoch, place, step);
            alignment_loss(s->layers, &l->batch, &rule, l->gradients);
            for (size_t k = 0; k < SIDES; k++)
                host_sgd(l->own[k], s->width * (s->width + 1), l->gradients[k], l->velocity[k], rate, 0.9,
                         options_real(run->options, "decay"));
            add_layers(s, l);
        }
    return OK;
}

static status analyse(struct method_run *run, const struct lesson *l, struct error *error)
{
    struct state *s = run->state;
    OWNED double *rows = xmalloc(array_size(l->n + 1, s->width * sizeof *rows));
    frozen_rows_widen(l->rows.features, l->n, s->width, true, rows);
    return discriminant_add(&s->analysis, rows, l->rows.labels, l->n, l->classes - l->first, s->pool, error);
}

static void lesson_free(struct lesson *l)
{
    frozen_rows_free(&l->rows);
    arena_destroy(&l->memory);
}

static status end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct state *s = run->state;
    SCOPED(lesson_free) struct lesson l = {0};
    status result = arena_create(&l.memory, 0, "lesson", error);
    NEXT(result, frozen_rows_read(&l.rows, run, task, error));
    l.n = l.rows.n;
    l.first = l.rows.first;
    l.classes = l.rows.classes;
    NEXT(result, frozen_rows_mirror(&l.rows, run, task, error));
    NEXT(result, describe(run, task, &l, error));
    if (result == OK) {
        allocate(run, task, &l);
        result = train(run, task, &l, error);
        NEXT(result, analyse(run, &l, error));
        for (size_t k = 0; result != OK && k < SIDES; k++) /* the task begins again */
            memcpy(s->layers[k].weights, l.past[k], s->width * (s->width + 1) * sizeof(double));
    }
    if (result == OK) {
        s->classes = l.classes;
        answer(s);
    }
    return result;
}

static status keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    struct state *s = run->state;
    struct discriminant *d = &s->analysis;
    size_t width = s->width, square = array_size(width, width), all = run->data->class_count;
    int64_t counts[] = {(int64_t)s->classes, s->prompts[s->classes]};
    TRY(serializer_host(serializer, "engine.counts", SAFETENSOR_I64, 2, counts, error));
    if (counts[0] == 0)
        return OK;
    if (!serializer->saving) {
        s->classes = d->classes = (size_t)counts[0];
        widen(s, s->classes, (size_t)counts[1], all);
        d->means = xrealloc(d->means, array_size(s->classes, width * sizeof *d->means));
        d->precision = xrealloc(d->precision, array_size(square, sizeof *d->precision));
    }
    size_t n = s->classes * width, layer = width * (width + 1);
    TRY(serializer_host(serializer, "engine.prompts", SAFETENSOR_I32, s->classes + 1, s->prompts, error));
    TRY(serializer_host(serializer, "engine.texts", SAFETENSOR_F32, (size_t)counts[1] * width, s->texts, error));
    TRY(serializer_host(serializer, "engine.centres", SAFETENSOR_F64, n, s->centres, error));
    TRY(serializer_host(serializer, "engine.image_layer", SAFETENSOR_F64, layer, s->layers[IMAGES].weights, error));
    TRY(serializer_host(serializer, "engine.text_layer", SAFETENSOR_F64, layer, s->layers[TEXTS].weights, error));
    TRY(serializer_host(serializer, "engine.means", SAFETENSOR_F64, n, d->means, error));
    TRY(serializer_host(serializer, "engine.precision", SAFETENSOR_F64, square, d->precision, error));
    if (s->descriptions != NULL)
        TRY(serializer_host(serializer, "engine.pairs", SAFETENSOR_F32, n * all, s->pairs, error));
    if (!serializer->saving) {
        discriminant_refresh(d, s->pool);
        answer(s);
    }
    return OK;
}

/* --- Scores --- */

static status scores(struct method_run *run, const struct task *task, const float *features, size_t n, size_t classes,
                     float *scores, struct error *error)
{
    const struct state *s = run->state;
    size_t width = s->width, first = frozen_classes_column(run, task),
           known = s->classes > first ? s->classes - first : 0;
    OWNED double *x = xmalloc(array_size(ROWS, (3 * width + 1) * sizeof *x)),
                 *own = xmalloc(array_size(ROWS, 2 * (s->classes + 1) * sizeof *own));
    double share = options_real(run->options, "statistics"), *units = x + ROWS * (width + 1), *u = units + ROWS * width,
           *analysis = own + ROWS * (s->classes + 1);
    struct alignment_ranking ranking = {.width = width,
                                        .stride = run->data->class_count,
                                        .top = TOP,
                                        .weight = options_real(run->options, "rank_weight")};
    known = known < classes ? known : classes;
    if (s->descriptions != NULL && known > 0)
        ranking.pairs = s->pairs + (first * ranking.stride + first) * width;
    for (size_t done = 0; done < n && known > 0; done += ROWS) {
        size_t count = n - done < ROWS ? n - done : ROWS;
        frozen_rows_widen(features + done * width, count, width, true, units);
        for (size_t i = 0; i < count; i++)
            put_row(x + i * (width + 1), features + (done + i) * width, width);
        projection_apply(&s->layers[IMAGES], x, count, u, NULL);
        projection_multiply(&s->layers[IMAGES], count, s->classes, width, u, s->answers, own);
        discriminant_scores(&s->analysis, units, count, s->pool, analysis);
        for (size_t i = 0; s->descriptions != NULL && i < count; i++)
            alignment_rank(&ranking, units + i * width, own + i * s->classes + first, known);
        for (size_t i = 0; i < count * s->classes; i++)
            own[i] += share * (analysis[i] - own[i]);
        for (size_t i = 0; i < count; i++)
            frozen_classes_decide(scores + (done + i) * classes, classes, known, own + i * s->classes + first);
    }
    return OK;
}

const struct method method_engine = {
    .name = "engine",
    .source = "ENGINE, ICCV 2025",
    .formula =
        "scores = (1 − statistics) · u · v̄ + statistics · z where zero-shot p names a learned class, else p; u = U x / "
        "‖U x‖, v = V t / ‖V t‖ with U and V sums of the tasks' layers; z: discriminant analysis",
    .options = options,
    .state_size = sizeof(struct state),
    .check = frozen_classes_once,
    .open = open,
    .close = close,
    .end_task = end_task,
    .scores = scores,
    .cost = cost,
    .keep = keep};
