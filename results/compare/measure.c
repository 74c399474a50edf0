/* The metrics of runs, from their evaluations. */
#include <math.h>
#include <stdlib.h>

#include "core/arena.h"
#include "results/compare/internal.h"
#include "results/metrics.h"

#define ROWS                                                                                                           \
    "SELECT run, compared.tasks, accumulates, untrained, configuration, seed, task, after_task, correct, images FROM " \
    "compared "                                                                                                        \
    "CROSS JOIN evaluations USING (run) ORDER BY compared.run"
#define TASKS "SELECT task, test_images, dataset.place FROM tasks JOIN dataset USING (name) WHERE run = ?1"

enum { RUN, TASK_COUNT, ACCUMULATES, UNTRAINED, CONFIGURATION, SEED, TASK, AFTER_TASK, CORRECT, IMAGES };

/* A matrix that is filled and emptied for one run after another. */
struct scan {
    const struct compare *c;
    struct statement *rows, *tasks, *insert, *complete;
    const struct metric **metric;
    int64_t run, configuration, seed;
    bool accumulates, untrained;
    size_t count, capacity;    /* tasks */
    double *accuracy;          /* [tasks + 1, tasks]; the first row is the zero-shot one */
    int64_t *images, *dataset; /* [tasks] */
};

static status begin(struct scan *scan, struct error *error)
{
    size_t tasks = (size_t)statement_integer(scan->rows, TASK_COUNT);
    scan->run = statement_integer(scan->rows, RUN);
    TRY(store_check_tasks(scan->c->store, scan->run, (int64_t)tasks, error));
    scan->accumulates = statement_integer(scan->rows, ACCUMULATES);
    scan->configuration = statement_integer(scan->rows, CONFIGURATION);
    scan->seed = statement_integer(scan->rows, SEED);
    scan->untrained = statement_integer(scan->rows, UNTRAINED);
    scan->count = tasks;
    if (tasks > scan->capacity) {
        free(scan->accuracy);
        free(scan->images);
        scan->accuracy = malloc(array_size((tasks + 1) * tasks, sizeof *scan->accuracy));
        scan->images = calloc(2 * tasks, sizeof *scan->images);
        if (!scan->accuracy || !scan->images)
            return compare_no_memory(scan->c, error);
        scan->dataset = scan->images + tasks;
        scan->capacity = tasks;
    }
    for (size_t i = 0; i < (tasks + 1) * tasks; i++)
        scan->accuracy[i] = NAN;
    return OK;
}

static status read_tasks(struct scan *scan, struct error *error)
{
    bool row;
    TRY(statement_bind(scan->tasks, VALUES(value_integer(scan->run)), error));
    for (;;) {
        TRY(statement_step(scan->tasks, &row, error));
        size_t task = row ? (size_t)statement_integer(scan->tasks, 0) : 0;
        if (!row)
            return OK;
        if (task < scan->count) {
            scan->images[task] = statement_integer(scan->tasks, 1);
            scan->dataset[task] = statement_integer(scan->tasks, 2);
        }
    }
}

static status insert(struct scan *scan, size_t metric, int64_t dataset, double value, struct error *error)
{
    return isnan(value) ? OK
                        : statement_run(scan->insert,
                                        VALUES(value_integer(scan->configuration), value_integer((int64_t)metric),
                                               value_integer(dataset), value_integer(scan->seed), value_real(value)),
                                        error);
}

/* Of one metric: the mean, and each dataset, where they were asked for. */
static status insert_metric(struct scan *scan, size_t m, const struct accuracy_matrix *matrix, int64_t only,
                            struct error *error)
{
    const struct comparison_request *request = scan->c->request;
    if (!request->filter.dataset)
        TRY(insert(scan, m, 0, metric_mean(scan->metric[m], matrix), error));
    for (size_t task = 0; task < scan->count; task++)
        if (request->filter.dataset ? scan->dataset[task] == only : request->detail != COMPARE_MEANS)
            TRY(insert(scan, m, scan->dataset[task], metric_of_task(scan->metric[m], matrix, task), error));
    return OK;
}

static status end(struct scan *scan, int64_t only, struct error *error)
{
    size_t tasks = scan->count;
    bool complete = true;
    struct accuracy_matrix matrix = {.tasks = tasks,
                                     .accuracy = scan->accuracy + tasks,
                                     .zero_shot = scan->accuracy,
                                     .images = scan->accumulates ? scan->images : NULL};
    for (size_t i = tasks; i < (tasks + 1) * tasks && scan->untrained && !scan->accumulates; i++)
        scan->accuracy[i] = scan->accuracy[i % tasks];
    for (size_t i = 0; i < tasks * tasks; i++)
        complete &= !isnan(matrix.accuracy[i]) || !accuracy_expected(&matrix, i / tasks, i % tasks);
    if (!complete)
        return OK;
    if (scan->accumulates || scan->c->request->filter.dataset || scan->c->request->detail != COMPARE_MEANS)
        TRY(read_tasks(scan, error));
    for (size_t m = 0; m < scan->c->request->metric_count; m++)
        TRY(insert_metric(scan, m, &matrix, only, error));
    return statement_run(scan->complete, VALUES(value_integer(scan->run)), error);
}

/* One pass over the evaluations in the order in which they lie in the file. only: the dataset that was asked for. */
static status read_rows(struct scan *scan, int64_t only, struct error *error)
{
    for (bool row = true; row;) {
        TRY(statement_step(scan->rows, &row, error));
        if (scan->run && (!row || statement_integer(scan->rows, RUN) != scan->run))
            TRY(end(scan, only, error));
        if (row && statement_integer(scan->rows, RUN) != scan->run)
            TRY(begin(scan, error));
        size_t task = row ? (size_t)statement_integer(scan->rows, TASK) : SIZE_MAX,
               after = row ? (size_t)statement_integer(scan->rows, AFTER_TASK) + 1 : 0;
        if (task < scan->count && after <= scan->count)
            scan->accuracy[after * scan->count + task] =
                100.0 * (double)statement_integer(scan->rows, CORRECT) / (double)statement_integer(scan->rows, IMAGES);
    }
    return OK;
}

status compare_measure(const struct compare *c, struct error *error)
{
    const struct comparison_request *request = c->request;
    struct database *database = c->store->database;
    struct scan scan = {.c = c, .metric = calloc(request->metric_count, sizeof *scan.metric)};
    size_t only = 0;
    status result = scan.metric ? OK : compare_no_memory(c, error);
    for (size_t m = 0; m < request->metric_count && result == OK; m++) {
        scan.metric[m] = metric_find(request->metrics[m]);
        result = database_run(c->store->database, "INSERT INTO metric VALUES (?1, ?2, ?3, ?4)",
                              VALUES(value_integer((int64_t)m), value_text(scan.metric[m]->name),
                                     value_text(scan.metric[m]->title), value_integer(scan.metric[m]->lower_is_better)),
                              error);
    }
    NEXT(result, compare_count(c, "SELECT max(place) FROM dataset JOIN request ON name = only_dataset", &only, error));
    NEXT(result, statement_open(&scan.rows, database, ROWS, error));
    NEXT(result, statement_open(&scan.tasks, database, TASKS, error));
    NEXT(result,
         statement_open(&scan.insert, database, "INSERT OR IGNORE INTO measured VALUES (?1, ?2, ?3, ?4, ?5)", error));
    NEXT(result, statement_open(&scan.complete, database, "UPDATE compared SET complete = 1 WHERE run = ?1", error));
    NEXT(result, read_rows(&scan, (int64_t)only, error));
    statement_close(scan.rows);
    statement_close(scan.tasks);
    statement_close(scan.insert);
    statement_close(scan.complete);
    free(scan.metric);
    free(scan.accuracy);
    free(scan.images);
    return result;
}
