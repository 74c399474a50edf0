#include "harness/methods/regressor.h"

#include <unistd.h>

#include "harness/train/services/frozen_classes.h"
#include "models/clip/cost.h"

static struct regression_cost cost_of(const struct method_run *run)
{
    const struct regressor *r = run->state;
    return regression_cost(&r->regression, frozen_classes_images(run->data), run->data->class_count,
                           run->data->task_count);
}

static status check_memory(const struct method_run *run, struct error *error)
{
    const struct regressor *r = run->state;
    double gigabyte = 1 << 30, needed = cost_of(run).most,
           machine = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (needed < machine)
        return OK;
    if (r->regression.form == REGRESSION_PRIMAL)
        return error_set(error, ERROR_MEMORY,
                         "method.hidden: %zu random features and %zu classes take %.1f GiB of memory, but this machine "
                         "has %.1f; lower it",
                         r->regression.basis, run->data->class_count, needed / gigabyte, machine / gigabyte);
    return error_set(error, ERROR_MEMORY,
                     "method.name: the memory of rail_dual grows with the square of the number of training images: "
                     "%.1f GiB for %zu, but this machine has %.1f; use fewer images (data.shots), or rail_primal, "
                     "whose memory does not depend on their number",
                     needed / gigabyte, frozen_classes_images(run->data), machine / gigabyte);
}

status regressor_open(struct method_run *run, size_t hidden, struct error *error)
{
    const struct model *model = run->model;
    struct regressor *r = run->state;
    r->regression.width = model->clip->dimensions.embed;
    r->regression.basis = r->regression.form == REGRESSION_MEANS ? r->regression.width : hidden;
    TRY(check_memory(run, error));
    TRY(threads_create(&r->pool, model->settings.threads, error));
    r->regression.pool = r->pool;
    return r->regression.form == REGRESSION_PRIMAL ? regression_draw(&r->regression, hidden, model->seed, error) : OK;
}

void regressor_close(struct method_run *run)
{
    struct regressor *r = run->state;
    regression_free(&r->regression);
    threads_destroy(r->pool);
}

void regressor_cost(const struct method_run *run, struct method_cost *cost)
{
    struct regression_cost regression = cost_of(run);
    *cost = (struct method_cost){.operations = regression.operations + cost_images(&run->model->clip->dimensions,
                                                                                   frozen_classes_images(run->data)),
                                 .memory = regression.most,
                                 .kept = regression.kept};
}

status regressor_end_task(struct method_run *run, const struct task *task, struct error *error)
{
    struct regression *r = &((struct regressor *)run->state)->regression;
    struct frozen_rows rows;
    status result = frozen_rows_read(&rows, run, task, error);
    if (result == OK && r->validated)
        frozen_rows_shuffle(&rows, rng_make(run->model->seed, RNG_HELD_OUT, (uint32_t)task->index, 0));
    NEXT(result, regression_add(r, rows.features, rows.labels, rows.n, rows.classes, error));
    NEXT(result, r->validated ? regression_solve_validated(r, rows.features, rows.labels, rows.n, rows.first, error)
                              : regression_solve(r, error));
    frozen_rows_free(&rows);
    return result;
}

status regressor_keep(struct method_run *run, const struct serializer *serializer, struct error *error)
{
    return regression_keep(&((struct regressor *)run->state)->regression, serializer, error);
}

static status own_scores(const void *context, const float *features, size_t n, double *scores, struct error *error)
{
    return regression_scores(context, features, n, scores, error);
}

status regressor_fuse(const struct regressor *r, size_t first, const float *features, size_t n, size_t classes,
                      float *scores, bool *adapted, struct error *error)
{
    return frozen_classes_fuse(&(struct frozen_classes){.width = r->regression.width,
                                                        .learned = r->regression.classes,
                                                        .share = r->fusion,
                                                        .others = r->others,
                                                        .scores = own_scores,
                                                        .context = &r->regression},
                               first, features, n, classes, scores, adapted, error);
}

status regressor_scores(struct method_run *run, const struct task *task, const float *features, size_t n,
                        size_t classes, float *scores, struct error *error)
{
    return regressor_fuse(run->state, frozen_classes_column(run, task), features, n, classes, scores, NULL, error);
}
