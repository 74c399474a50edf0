/* One Gaussian per task, with a covariance of its own (Tang et al., "Mind the Interference", ECCV 2024): the error is −log N(x; μ_t,
 * Σ_t) of the normalised image features. Σ_t has n − 1 in its denominator and 10⁻⁷ added to its diagonal, as in the public code
 * (lloongx/DIKI). The densest task always wins there: by default there is no threshold.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "harness/selectors/prototypes.h"

#define RIDGE 1e-7

/* prototypes come first. A task has rows [width + 2, width]: W = L⁻¹ with Σ = L Lᵀ, the mean, and log √((2π)^width |Σ|) before
 * zeros. */
struct state {
    struct prototypes prototypes;
    size_t *counts; /* [tasks] width + 2, or 0 */
    float **rows;
};

static status open_tasks(struct selector *selector, enum parameters_mode mode, struct error *error)
{
    struct state *s = xcalloc(1, sizeof *s);
    (void)mode, (void)error;
    selector->state = s;
    s->counts = xcalloc(selector->tasks, sizeof *s->counts);
    s->rows = xcalloc(selector->tasks, sizeof *s->rows);
    prototypes_open(&s->prototypes, selector, true);
    s->prototypes.scale = 0.5;
    return OK;
}

static void close_tasks(struct selector *selector)
{
    struct state *s = selector->state;
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
static void estimate(const float *rows, size_t n, size_t width, float *mean, double *covariance)
{
    double *gap = xcalloc(width, sizeof *gap);
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
    free(gap);
}

/* The rows of a task from its covariance, which becomes L; the mean is there already. */
static status derive(float *rows, size_t width, double *covariance, struct error *error)
{
    if (!gaussian_factorise(covariance, width))
        return error_set(error, ERROR_ARGUMENT,
                         "selector: the features of the training images have no covariance that can be inverted; use "
                         "more images, or selector.kind=gaussian");
    double *inverse = xcalloc(width * width, sizeof *inverse), logarithm = (double)width * log(2 * M_PI) / 2;
    gaussian_invert(covariance, width, inverse, rows);
    for (size_t j = 0; j < width; j++)
        logarithm += log(covariance[j * width + j]);
    rows[(width + 1) * width] = (float)logarithm;
    free(inverse);
    return OK;
}

static status fit(struct selector *selector, const struct task *task, const struct selector_images *images, size_t used,
                  struct error *error)
{
    struct state *s = selector->state;
    size_t k = task->index, width = s->prototypes.width;
    float *normal = xmalloc(array_size(used + 1, width * sizeof *normal));
    double *covariance = xcalloc(width * width, sizeof *covariance);
    free(s->rows[k]);
    s->counts[k] = width + 2;
    s->rows[k] = xcalloc((width + 2) * width, sizeof **s->rows);
    prototypes_normalise(images->features, used, width, normal);
    estimate(normal, used, width, s->rows[k] + width * width, covariance);
    status result = derive(s->rows[k], width, covariance, error);
    free(covariance);
    free(normal);
    TRY(result);
    return selector_set_threshold(
        selector, k, &(struct selector_images){.n = images->n - used, .features = images->features + used * width},
        error);
}

/* ½ ‖W(x − μ)‖² is the prototypes' error to a single point, 0, with the task's own metric. */
static status errors_of(struct selector *selector, size_t k, const struct selector_images *images, float *errors,
                        struct error *error)
{
    struct state *s = selector->state;
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
static float weight(const struct selector *selector, float error)
{
    return 1 / (1 + expf(error / (float)selector->model->clip->dimensions.embed + 1));
}

static struct kept_rows rows_of(const struct selector *selector)
{
    struct state *s = selector->state;
    return (struct kept_rows){.name = "gaussian", .width = s->prototypes.width, .counts = s->counts, .rows = s->rows};
}

static status keep(struct selector *selector, const struct serializer *serializer, size_t trained, struct error *error)
{
    const struct kept_rows rows = rows_of(selector);
    return prototypes_keep_rows(&rows, serializer, trained, error);
}

static status write_tasks(const struct selector *selector, struct selector_tensors *tensors, struct error *error)
{
    const struct kept_rows rows = rows_of(selector);
    (void)error;
    prototypes_write_rows(&rows, selector->trained, tensors);
    return OK;
}

static status read_tasks(struct selector *selector, const struct safetensors *file, struct error *error)
{
    const struct kept_rows rows = rows_of(selector);
    return prototypes_read_rows(&rows, selector->tasks, rows.width + 2, file, error);
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
    .fit = fit,
    .errors = errors_of,
    .weight = weight,
    .keep = keep,
    .write = write_tasks,
    .read = read_tasks};
