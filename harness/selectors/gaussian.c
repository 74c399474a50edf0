/* Selectors by Gaussians of image features: of every class with one covariance (gaussian), or of every task with its own
 * (task_gaussian). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/linear.h"
#include "core/scope.h"
#include "harness/selectors/prototypes.h"

/* --- gaussian ---
 *
 * One Gaussian per class, all with the same covariance: the error is the squared Mahalanobis distance to the nearest class
 * mean of the task (Lee et al. 2018, "A Simple Unified Framework for Detecting Out-of-Distribution Samples", arXiv
 * 1807.03888, equations 1 and 2). A new task changes the covariance and with it all distances and thresholds, so some
 * held-out features of every task are kept.
 */

enum { HELD_OUT = 256 /* images of a task that set its threshold, at most */ };

struct state {
    struct prototypes prototypes; /* first: the class means, whitened */
    double *scatter; /* [width, width] Σ (x − class mean)(x − class mean)ᵀ of all training images so far */
    double images;
    size_t *classes, *held_out; /* [tasks] */
    float **means, **held;      /* [tasks] [classes, width] and [held_out, width], on the sphere */
};

static status refuse_few(double images, size_t width, double shrinkage, struct error *error)
{
    return error_set(error, ERROR_ARGUMENT,
                     "selector: %.0f images do not determine the covariance of %zu features; raise selector.shrinkage "
                     "(now at %g)",
                     images, width, shrinkage);
}

/* The first task is too small before it is trained, not only after. */
static status open_gaussian(struct selector *selector, enum parameters_mode mode, struct error *error)
{
    size_t n = selector->tasks, width = selector->model->clip->dimensions.embed;
    size_t images = mode == PARAMETERS_TRAINED ? dataset_size(selector->data->tasks[0].dataset, SPLIT_TRAIN) : SIZE_MAX,
           used = images - images / 10;
    if (selector->settings.shrinkage == 0 && used < width)
        return refuse_few((double)used, width, 0, error);
    struct state *s = xcalloc(1, sizeof *s);
    selector->state = s;
    s->scatter = xcalloc(width * width, sizeof *s->scatter);
    s->classes = xcalloc(n, sizeof *s->classes);
    s->held_out = xcalloc(n, sizeof *s->held_out);
    s->means = xcalloc(n, sizeof *s->means);
    s->held = xcalloc(n, sizeof *s->held);
    prototypes_open(&s->prototypes, selector, true);
    return OK;
}

static void close_gaussian(struct selector *selector)
{
    struct state *s = selector->state;
    if (s == NULL)
        return;
    for (size_t k = 0; k < selector->tasks; k++) {
        free(s->means != NULL ? s->means[k] : NULL);
        free(s->held != NULL ? s->held[k] : NULL);
    }
    prototypes_close(&s->prototypes);
    free(s->scatter);
    free(s->classes);
    free(s->held_out);
    free(s->means);
    free(s->held);
    free(s);
}

/* (1 − s) · scatter / images + s · (mean variance) · 1; where there is no variance at all, 1. */
static void estimate(const struct state *s, double shrinkage, double *covariance)
{
    size_t width = s->prototypes.width;
    double trace = 0;
    for (size_t i = 0; i < width; i++)
        trace += s->scatter[i * width + i] / s->images;
    for (size_t i = 0; i < width * width; i++)
        covariance[i] = trace > 0 ? (1 - shrinkage) * s->scatter[i] / s->images : 0;
    for (size_t i = 0; i < width; i++)
        covariance[i * width + i] += trace > 0 ? shrinkage * trace / (double)width : 1;
}

static status whiten(struct selector *selector, struct error *error)
{
    struct state *s = selector->state;
    size_t width = s->prototypes.width;
    OWNED double *covariance = xmalloc(array_size(width * width, sizeof *covariance)),
                 *inverse = xmalloc(array_size(width * width, sizeof *inverse));
    estimate(s, selector->settings.shrinkage, covariance);
    if (!linear_cholesky(covariance, width))
        return refuse_few(s->images, width, selector->settings.shrinkage, error);
    linear_invert_lower(covariance, width, inverse, s->prototypes.whitening);
    return OK;
}

static void take_rows(float **rows, size_t count, size_t width)
{
    free(*rows);
    *rows = xcalloc(array_size(count + 1, width), sizeof **rows);
}

/* The means of the classes that have images among the rows [n, width], one below the other in task k's; place [classes]:
 * the row of each. */
static void class_means(struct state *s, size_t k, const float *rows, const int32_t *labels, size_t n, size_t *place,
                        size_t classes)
{
    OWNED size_t *counts = xcalloc(classes, sizeof *counts);
    size_t width = s->prototypes.width;
    OWNED double *sums = xcalloc(array_size(classes, width), sizeof *sums);
    take_rows(&s->means[k], classes, width);
    for (size_t i = 0; i < n; i++) {
        counts[labels[i]]++;
        for (size_t j = 0; j < width; j++)
            sums[(size_t)labels[i] * width + j] += (double)rows[i * width + j];
    }
    s->classes[k] = 0;
    for (size_t c = 0; c < classes; c++) {
        if (counts[c] == 0)
            continue;
        place[c] = s->classes[k]++;
        for (size_t j = 0; j < width; j++)
            s->means[k][place[c] * width + j] = (float)(sums[c * width + j] / (double)counts[c]);
    }
}

static void add_scatter(struct state *s, size_t k, const float *rows, const int32_t *labels, size_t n,
                        const size_t *place, double *gap)
{
    size_t width = s->prototypes.width;
    for (size_t i = 0; i < n; i++) {
        const float *mean = s->means[k] + place[labels[i]] * width;
        for (size_t j = 0; j < width; j++)
            gap[j] = (double)rows[i * width + j] - (double)mean[j];
        for (size_t j = 0; j < width; j++)
            for (size_t l = 0; l <= j; l++)
                s->scatter[j * width + l] += gap[j] * gap[l];
    }
    for (size_t j = 0; j < width; j++)
        for (size_t l = 0; l < j; l++)
            s->scatter[l * width + j] = s->scatter[j * width + l];
    s->images += (double)n;
}

static void learn(struct state *s, size_t k, const float *features, const int32_t *labels, size_t n, size_t classes)
{
    OWNED size_t *place = xcalloc(classes, sizeof *place);
    size_t width = s->prototypes.width;
    OWNED float *rows = xmalloc(array_size(n + 1, width * sizeof *rows));
    OWNED double *gap = xmalloc(width * sizeof *gap);
    prototypes_normalise(features, n, width, rows);
    class_means(s, k, rows, labels, n, place, classes);
    add_scatter(s, k, rows, labels, n, place, gap);
}

/* The class means of the first `trained` tasks in the new metric. Subtracting their mean keeps the numbers small. */
static void place_means(struct state *s, size_t trained)
{
    struct prototypes *p = &s->prototypes;
    size_t width = p->width, classes = 0;
    for (size_t k = 0; k < trained; k++)
        classes += s->classes[k];
    for (size_t j = 0; j < width; j++) {
        double total = 0;
        for (size_t k = 0; k < trained; k++)
            for (size_t c = 0; c < s->classes[k]; c++)
                total += (double)s->means[k][c * width + j];
        p->mean[j] = (float)(total / (double)classes);
    }
    for (size_t k = 0; k < trained; k++) {
        prototypes_take(p, k, s->classes[k]);
        for (size_t i = 0; i < s->classes[k] * width; i++) {
            const float *w = p->whitening + i % width * width, *x = s->means[k] + i / width * width;
            double total = 0;
            for (size_t j = 0; j < width; j++)
                total += (double)w[j] * ((double)x[j] - (double)p->mean[j]);
            p->points[k][i] = (float)total;
        }
    }
}

/* Everything that follows from what is kept. */
static status derive(struct selector *selector, size_t trained, struct error *error)
{
    struct state *s = selector->state;
    if (trained == 0)
        return OK;
    TRY(whiten(selector, error));
    place_means(s, trained);
    for (size_t k = 0; k < trained; k++)
        TRY(selector_set_threshold(selector, k, &(struct selector_images){.n = s->held_out[k], .features = s->held[k]},
                                   error));
    return OK;
}

static status fit(struct selector *selector, const struct task *task, const struct selector_images *images, size_t used,
                  struct error *error)
{
    struct state *s = selector->state;
    size_t k = task->index, width = s->prototypes.width, held_out = images->n - used;
    s->held_out[k] = held_out < HELD_OUT ? held_out : HELD_OUT;
    learn(s, k, images->features, images->labels, used, dataset_classes(task->dataset));
    take_rows(&s->held[k], s->held_out[k], width);
    prototypes_normalise(images->features + used * width, s->held_out[k], width, s->held[k]);
    return derive(selector, k + 1, error);
}

static status keep(struct selector *selector, const struct serializer *serializer, size_t trained, struct error *error)
{
    struct state *s = selector->state;
    size_t width = s->prototypes.width;
    TRY(serializer_host(serializer, "selector.images", SAFETENSOR_F64, 1, &s->images, error));
    TRY(serializer_host(serializer, "selector.scatter", SAFETENSOR_F64, width * width, s->scatter, error));
    TRY(prototypes_keep_rows(
        &(struct kept_rows){.name = "means", .width = width, .counts = s->classes, .rows = s->means}, serializer,
        trained, error));
    TRY(prototypes_keep_rows(
        &(struct kept_rows){.name = "held_out", .width = width, .counts = s->held_out, .rows = s->held}, serializer,
        trained, error));
    return serializer->saving ? OK : derive(selector, trained, error);
}

const struct selector_kind selector_gaussian = {
    .name = "gaussian",
    .source = "Mahalanobis distance to the nearest class mean (Lee et al., NeurIPS 2018, arXiv 1807.03888)",
    .formula = "error = min over classes c of (x - mean_c)' S^-1 (x - mean_c), S the shrunk covariance of all classes",
    .route = ROUTE_BY_ERRORS,
    .features = FEATURES_IMAGE,
    .shared = true,
    .open = open_gaussian,
    .close = close_gaussian,
    .fit = fit,
    .errors = prototypes_errors,
    .keep = keep,
    .file = prototypes_file};

/* --- task_gaussian ---
 *
 * One Gaussian per task, with a covariance of its own (Tang et al., "Mind the Interference", ECCV 2024): the error is −log N(x; μ_t,
 * Σ_t) of the normalised image features. Σ_t has n − 1 in its denominator and 10⁻⁷ added to its diagonal, as in the public code
 * (lloongx/DIKI). The densest task always wins there: by default there is no threshold.
 */

#define RIDGE 1e-7

/* prototypes come first. A task has rows [width + 2, width]: W = L⁻¹ with Σ = L Lᵀ, the mean, and log √((2π)^width |Σ|) before
 * zeros. */
struct task_state {
    struct prototypes prototypes;
    size_t *counts; /* [tasks] width + 2, or 0 */
    float **rows;
};

static status open_tasks(struct selector *selector, enum parameters_mode mode, struct error *error)
{
    struct task_state *s = xcalloc(1, sizeof *s);
    selector->state = s;
    s->counts = xcalloc(selector->tasks, sizeof *s->counts);
    s->rows = xcalloc(selector->tasks, sizeof *s->rows);
    prototypes_open(&s->prototypes, selector, true);
    s->prototypes.scale = 0.5;
    return OK;
}

static void close_tasks(struct selector *selector)
{
    struct task_state *s = selector->state;
    if (s == NULL)
        return;
    for (size_t k = 0; k < selector->tasks; k++)
        free(s->rows[k]);
    prototypes_close(&s->prototypes);
    free(s->counts);
    free(s->rows);
    free(s);
}

/* mean [width] and covariance [width, width] of rows [n, width] */
static void estimate_task(const float *rows, size_t n, size_t width, float *mean, double *covariance)
{
    OWNED double *gap = xcalloc(width, sizeof *gap);
    for (size_t i = 0; i < n * width; i++)
        gap[i % width] += (double)rows[i] / (double)n;
    for (size_t j = 0; j < width; j++)
        mean[j] = (float)gap[j];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < width; j++)
            gap[j] = (double)rows[i * width + j] - (double)mean[j];
        for (size_t j = 0; j < width; j++)
            for (size_t l = 0; l <= j; l++)
                covariance[j * width + l] += gap[j] * gap[l] / (double)(n > 1 ? n - 1 : 1);
    }
    for (size_t j = 0; j < width; j++)
        covariance[j * width + j] += RIDGE;
}

/* The rows of a task from its covariance, which becomes L; the mean is there already. */
static status derive_task(float *rows, size_t width, double *covariance, struct error *error)
{
    if (!linear_cholesky(covariance, width))
        return error_set(error, ERROR_ARGUMENT,
                         "selector: the features of the training images have no covariance that can be inverted; use "
                         "more images, or selector.kind=gaussian");
    OWNED double *inverse = xcalloc(width * width, sizeof *inverse);
    double logarithm = (double)width * log(2 * M_PI) / 2;
    linear_invert_lower(covariance, width, inverse, rows);
    for (size_t j = 0; j < width; j++)
        logarithm += log(covariance[j * width + j]);
    rows[(width + 1) * width] = (float)logarithm;
    return OK;
}

static status fit_task(struct selector *selector, const struct task *task, const struct selector_images *images,
                       size_t used, struct error *error)
{
    struct task_state *s = selector->state;
    size_t k = task->index, width = s->prototypes.width;
    OWNED float *normal = xmalloc(array_size(used + 1, width * sizeof *normal));
    OWNED double *covariance = xcalloc(width * width, sizeof *covariance);
    free(s->rows[k]);
    s->counts[k] = width + 2;
    s->rows[k] = xcalloc((width + 2) * width, sizeof **s->rows);
    prototypes_normalise(images->features, used, width, normal);
    estimate_task(normal, used, width, s->rows[k] + width * width, covariance);
    TRY(derive_task(s->rows[k], width, covariance, error));
    return selector_set_threshold(
        selector, k, &(struct selector_images){.n = images->n - used, .features = images->features + used * width},
        error);
}

/* ½ ‖W(x − μ)‖² is the prototypes' error to a single point, 0, with the task's own metric. */
static status errors_of(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                        struct error *error)
{
    struct task_state *s = selector->state;
    struct prototypes *p = &s->prototypes;
    size_t width = p->width;
    prototypes_take(p, k, 1);
    memset(p->points[k], 0, width * sizeof **p->points);
    memcpy(p->whitening, s->rows[k], width * width * sizeof *p->whitening);
    memcpy(p->mean, s->rows[k] + width * width, width * sizeof *p->mean);
    TRY(prototypes_errors(selector, k, images, errors, error));
    for (size_t i = 0; i < images->n; i++)
        errors[i] += s->rows[k][(width + 1) * width];
    return OK;
}

/* σ(log N / D − 1), near 0 far from all tasks */
static float weight_of(const struct selector *selector, float error)
{
    return 1 / (1 + expf(error / (float)selector->model->clip->dimensions.embed + 1));
}

static struct kept_rows rows_of(const struct selector *selector)
{
    struct task_state *s = selector->state;
    return (struct kept_rows){.name = "gaussian", .width = s->prototypes.width, .counts = s->counts, .rows = s->rows};
}

static status keep_tasks(struct selector *selector, const struct serializer *serializer, size_t trained,
                         struct error *error)
{
    const struct kept_rows rows = rows_of(selector);
    return prototypes_keep_rows(&rows, serializer, trained, error);
}

static status file_tasks(const struct selector *selector, const struct selector_arrays *arrays, struct error *error)
{
    const struct kept_rows rows = rows_of(selector);
    return prototypes_file_rows(&rows, arrays, selector->trained, rows.width + 2, error);
}

const struct selector_kind selector_task_gaussian = {
    .name = "task_gaussian",
    .source = "Density of one Gaussian per task (Tang et al., DIKI, ECCV 2024)",
    .formula = "error = -log N(x; mean_t, S_t), mean and covariance of the task's training images",
    .route = ROUTE_BY_ERRORS,
    .features = FEATURES_IMAGE,
    .threshold = "1e9",
    .open = open_tasks,
    .close = close_tasks,
    .fit = fit_task,
    .errors = errors_of,
    .weight = weight_of,
    .keep = keep_tasks,
    .file = file_tasks};
