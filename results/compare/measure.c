/* The metrics of runs, from their evaluations. */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "results/compare/internal.h"
#include "results/metrics.h"

/* One pass over the evaluations in the order in which they lie in the file. */
#define ROWS                                                                                                           \
    "SELECT run, compared.tasks, accumulates, untrained, configuration, seed, task, after_task, correct, images FROM " \
    "compared CROSS JOIN evaluations USING (run) ORDER BY compared.run"
#define TASKS "SELECT task, test_images, dataset.place FROM tasks JOIN dataset USING (name) WHERE run = ?1"

enum { RUN, TASK_COUNT, ACCUMULATES, UNTRAINED, CONFIGURATION, SEED, TASK, AFTER_TASK, CORRECT, IMAGES };

/* A matrix that is filled and emptied for one run after another. */
struct scan {
    const struct compare *c;
    struct statement *tasks, *insert, *complete;
    const struct metric **metric;
    int64_t run, configuration, seed, only; /* only: the dataset that was asked for */
    int64_t accumulates;                    /* 1: classes, 2: domains */
    bool untrained, details;                /* details: values of each dataset, or of one */
    size_t count, capacity;                 /* tasks */
    double *accuracy;                       /* [tasks + 1, tasks]; the first row is the zero-shot one */
    int64_t *images, *dataset;              /* [tasks] */
};

static status begin(struct scan *scan, struct statement *row, struct error *error)
{
    int64_t tasks = statement_integer(row, TASK_COUNT);
    scan->run = statement_integer(row, RUN);
    TRY(store_check_tasks(scan->c->store, scan->run, tasks, error));
    scan->accumulates = statement_integer(row, ACCUMULATES);
    scan->configuration = statement_integer(row, CONFIGURATION);
    scan->seed = statement_integer(row, SEED);
    scan->untrained = statement_integer(row, UNTRAINED);
    scan->count = (size_t)tasks;
    if (scan->count > scan->capacity) {
        scan->capacity = scan->count;
        scan->accuracy = xrealloc(scan->accuracy, (scan->count + 1) * scan->count * sizeof *scan->accuracy);
        scan->images = xrealloc(scan->images, 2 * scan->count * sizeof *scan->images);
        scan->dataset = scan->images + scan->count;
    }
    for (size_t i = 0; i < (scan->count + 1) * scan->count; i++)
        scan->accuracy[i] = NAN;
    for (size_t task = 0; task < scan->count; task++)
        scan->images[task] = scan->dataset[task] = 0;
    return OK;
}

static status read_tasks(struct scan *scan, struct error *error)
{
    bool row;
    TRY(statement_bind(scan->tasks, VALUES(value_integer(scan->run)), error));
    while (true) {
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

/* The mean of each metric, and each dataset, where they were asked for; nothing where the matrix has holes. */
static status end(struct scan *scan, struct error *error)
{
    size_t tasks = scan->count;
    struct accuracy_matrix matrix = {.tasks = tasks,
                                     .accuracy = scan->accuracy + tasks,
                                     .zero_shot = scan->accuracy,
                                     .images = scan->accumulates ? scan->images : NULL,
                                     .later = scan->accumulates == 2};
    for (size_t i = tasks; i < (tasks + 1) * tasks && scan->untrained && !scan->accumulates; i++)
        scan->accuracy[i] = scan->accuracy[i % tasks];
    for (size_t i = 0; i < tasks * tasks; i++)
        if (isnan(matrix.accuracy[i]) && accuracy_expected(&matrix, i / tasks, i % tasks))
            return OK;
    if (scan->accumulates || scan->details)
        TRY(read_tasks(scan, error));
    for (size_t m = 0; m < scan->c->request->metric_count; m++) {
        if (!scan->only)
            TRY(insert(scan, m, 0, metric_mean(scan->metric[m], &matrix), error));
        for (size_t task = 0; task < tasks && scan->details; task++)
            if (!scan->only || scan->dataset[task] == scan->only)
                TRY(insert(scan, m, scan->dataset[task], metric_of_task(scan->metric[m], &matrix, task), error));
    }
    return statement_run(scan->complete, VALUES(value_integer(scan->run)), error);
}

static status take_evaluation(void *context, struct statement *row, struct error *error)
{
    struct scan *scan = context;
    if (statement_integer(row, RUN) != scan->run) {
        if (scan->run)
            TRY(end(scan, error));
        TRY(begin(scan, row, error));
    }
    size_t task = (size_t)statement_integer(row, TASK), after = (size_t)statement_integer(row, AFTER_TASK) + 1;
    if (task < scan->count && after <= scan->count)
        scan->accuracy[after * scan->count + task] =
            100.0 * (double)statement_integer(row, CORRECT) / (double)statement_integer(row, IMAGES);
    return OK;
}

static status note_metrics(struct scan *scan, struct error *error)
{
    const struct comparison_request *request = scan->c->request;
    for (size_t m = 0; m < request->metric_count; m++) {
        const struct metric *metric = scan->metric[m] = metric_find(request->metrics[m]);
        TRY(database_run(scan->c->store->database, "INSERT INTO metric VALUES (?1, ?2, ?3, ?4)",
                         VALUES(value_integer((int64_t)m), value_text(metric->name), value_text(metric->title),
                                value_integer(metric->lower_is_better)),
                         error));
    }
    return OK;
}

status compare_measure(const struct compare *c, struct error *error)
{
    const struct comparison_request *request = c->request;
    struct database *database = c->store->database;
    struct scan scan = {.c = c,
                        .metric = xcalloc(request->metric_count, sizeof *scan.metric),
                        .details = request->filter.dataset || request->detail != COMPARE_MEANS};
    status result = note_metrics(&scan, error);
    NEXT(result, database_integer(database, "SELECT place FROM dataset JOIN request ON name = only_dataset", &scan.only,
                                  error));
    NEXT(result, statement_open(&scan.tasks, database, TASKS, error));
    NEXT(result,
         statement_open(&scan.insert, database, "INSERT OR IGNORE INTO measured VALUES (?1, ?2, ?3, ?4, ?5)", error));
    NEXT(result, statement_open(&scan.complete, database, "UPDATE compared SET complete = 1 WHERE run = ?1", error));
    NEXT(result, database_each(database, ROWS, NO_VALUES, take_evaluation, &scan, error));
    if (scan.run)
        NEXT(result, end(&scan, error));
    statement_close(scan.tasks);
    statement_close(scan.insert);
    statement_close(scan.complete);
    free(scan.metric);
    free(scan.accuracy);
    free(scan.images);
    return result;
}
