/* Checks derived values: each run's metrics by metrics.c, and means and variances over seeds from those. Runs are read
 * configuration by configuration, so that one is in memory at a time. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "results/verify/internal.h"

#define MOST_METRICS 16

/* Mean and sum of squared deviations, one value after another (Welford). */
struct moments {
    double count, mean, squares;
};

/* Moments of a configuration over its finished runs, and the same for each dataset. */
struct group {
    char *name; /* the dataset's; NULL: of the mean over tasks */
    bool seen;  /* a view has it */
    struct moments metric[MOST_METRICS];
};

struct groups {
    char hash[80];
    struct group *group;
    size_t count;
};

/* The rows of a view, read beside the runs: the configuration's hash, what is within it, then the values. */
struct cursor {
    struct statement *rows;
    bool row;
};

/* Views, in the order of the runs. */
struct views {
    struct cursor task_metrics, metrics, leaderboard, task_leaderboard;
};

/* The run that is being checked; text is borrowed from the statement. */
struct subject {
    int64_t run;
    const char *hash, *method;
    bool finished;
    struct run_matrix matrix;
};

/* NAN equals NAN. */
static bool agree(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-9 * (1 + fabs(a));
}

static double real_of(struct statement *statement, size_t column)
{
    struct value value = statement_value(statement, column);
    return value.kind == VALUE_REAL ? value.real : value.kind == VALUE_INTEGER ? (double)value.integer : (double)NAN;
}

static status out_of_memory(const struct verifying *v, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(v->store));
}

/* --- Metrics of a run --- */

static void cursor_close(struct cursor *cursor)
{
    statement_close(cursor->rows);
    *cursor = (struct cursor){0};
}

static void views_close(struct views *views)
{
    cursor_close(&views->task_metrics);
    cursor_close(&views->metrics);
    cursor_close(&views->leaderboard);
    cursor_close(&views->task_leaderboard);
}

static status cursor_open(struct cursor *cursor, const struct verifying *v, const struct text *sql, struct error *error)
{
    if (sql->failed)
        return out_of_memory(v, error);
    TRY(statement_open(&cursor->rows, v->store->database, sql->data, error));
    return statement_step(cursor->rows, &cursor->row, error);
}

enum { HASH, RUN, TASK, FIRST_METRIC };

static status open_metrics(struct cursor *cursor, const struct verifying *v, const char *view, const char *task,
                           struct error *error)
{
    size_t count;
    struct text sql = {0};
    const struct metric *metrics = metric_list(&count);
    text_add(&sql, "SELECT suite_hash, run, %s", task);
    for (size_t i = 0; i < count; i++)
        text_add(&sql, ", %s", metrics[i].name);
    text_add(&sql, " FROM %s JOIN runs USING (run) ORDER BY suite_hash, run, 3", view);
    status result = cursor_open(cursor, v, &sql, error);
    text_free(&sql);
    return result;
}

/* The views may have rows of runs that were not asked for; order: before (negative), at or after the subject. */
static int order_of(const struct cursor *cursor, const struct subject *subject)
{
    int order = strcmp(statement_text(cursor->rows, HASH), subject->hash);
    int64_t run = statement_integer(cursor->rows, RUN);
    return order != 0 ? order : (run > subject->run) - (run < subject->run);
}

static status cursor_seek(struct cursor *cursor, const struct subject *subject, struct error *error)
{
    while (cursor->row && order_of(cursor, subject) < 0)
        TRY(statement_step(cursor->rows, &cursor->row, error));
    return OK;
}

static bool column_complete(const struct accuracy_matrix *matrix, size_t task)
{
    bool complete = true;
    for (size_t i = 0; i < matrix->tasks; i++)
        complete =
            complete && (!accuracy_expected(matrix, i, task) || !isnan(matrix->accuracy[i * matrix->tasks + task]));
    return complete;
}

static bool all_complete(const struct accuracy_matrix *matrix)
{
    bool complete = true;
    for (size_t task = 0; task < matrix->tasks; task++)
        complete = complete && column_complete(matrix, task);
    return complete;
}

/* task SIZE_MAX: their means. */
static void compare_metrics(const struct verifying *v, const struct subject *subject, size_t task,
                            struct statement *row)
{
    size_t count;
    const struct metric *metrics = metric_list(&count);
    for (size_t i = 0; i < count; i++) {
        const struct accuracy_matrix *matrix = &subject->matrix.matrix;
        bool mean = task == SIZE_MAX;
        double expected = mean ? metric_mean(&metrics[i], matrix) : metric_of_task(&metrics[i], matrix, task);
        double found = row ? real_of(row, FIRST_METRIC + i) : (double)NAN;
        if (agree(expected, found))
            continue;
        char where[100];
        if (mean)
            snprintf(where, sizeof where, "metrics, %s", metrics[i].name);
        else
            snprintf(where, sizeof where, "task_metrics, task %zu, %s", task, metrics[i].name);
        verify_fault_real(v, subject->run, "metrics", where, expected, found);
    }
}

static status check_task_metrics(const struct verifying *v, struct cursor *cursor, const struct subject *subject,
                                 struct error *error)
{
    const struct accuracy_matrix *matrix = &subject->matrix.matrix;
    TRY(cursor_seek(cursor, subject, error));
    for (size_t task = 0; task < matrix->tasks; task++) {
        bool there =
            cursor->row && order_of(cursor, subject) == 0 && statement_integer(cursor->rows, TASK) == (int64_t)task;
        bool complete = column_complete(matrix, task);
        if (complete)
            compare_metrics(v, subject, task, there ? cursor->rows : NULL);
        else if (there)
            verify_fault(v, &(struct verify_fault){subject->run, "metrics", "task_metrics",
                                                   "none: the matrix has holes", "a row"});
        if (there)
            TRY(statement_step(cursor->rows, &cursor->row, error));
    }
    return OK;
}

static status check_mean_metrics(const struct verifying *v, struct cursor *cursor, const struct subject *subject,
                                 struct error *error)
{
    TRY(cursor_seek(cursor, subject, error));
    bool there = cursor->row && order_of(cursor, subject) == 0;
    if (all_complete(&subject->matrix.matrix))
        compare_metrics(v, subject, SIZE_MAX, there ? cursor->rows : NULL);
    else if (there)
        verify_fault(v,
                     &(struct verify_fault){subject->run, "metrics", "metrics", "none: the matrix has holes", "a row"});
    return OK;
}

/* --- A finished run --- */

/* Where classes accumulate, zero-shot CLIP is tested after every task, too. */
static bool has_cell(const struct accuracy_matrix *matrix, enum verify_cells cells, int64_t after_task, size_t task)
{
    if (after_task < 0)
        return cells != CELLS_TRAINED;
    if (cells == CELLS_DIAGONAL)
        return after_task == (int64_t)task;
    if (cells == CELLS_LAST)
        return after_task == (int64_t)matrix->tasks - 1;
    return (cells == CELLS_ALL || cells == CELLS_TRAINED || matrix->images != NULL) &&
           accuracy_expected(matrix, (size_t)after_task, task);
}

static void check_cells(const struct verifying *v, const struct subject *subject)
{
    const struct accuracy_matrix *matrix = &subject->matrix.matrix;
    enum verify_cells cells = v->verification->cells ? v->verification->cells(subject->method) : CELLS_ALL;
    for (int64_t after_task = -1; after_task < (int64_t)matrix->tasks; after_task++)
        for (size_t task = 0; task < matrix->tasks; task++) {
            double found =
                after_task < 0 ? matrix->zero_shot[task] : matrix->accuracy[(size_t)after_task * matrix->tasks + task];
            bool expected = has_cell(matrix, cells, after_task, task);
            char where[80];
            if (expected != isnan(found))
                continue;
            snprintf(where, sizeof where, "task %zu, after task %" PRId64, task, after_task);
            verify_fault(v, &(struct verify_fault){subject->run, "matrix", where,
                                                   expected ? "an accuracy" : "none with this method",
                                                   expected ? "none" : "an accuracy"});
        }
}

/* --- Means over seeds --- */

static void moments_add(struct moments *moments, double value)
{
    double before = value - moments->mean;
    moments->count++;
    moments->mean += before / moments->count;
    moments->squares += before * (value - moments->mean);
}

static struct group *find_group(struct groups *groups, const char *name)
{
    for (size_t i = 0; i < groups->count; i++) {
        const char *other = groups->group[i].name;
        if (name && other ? strcmp(name, other) == 0 : name == other)
            return &groups->group[i];
    }
    return NULL;
}

static struct group *add_group(struct groups *groups, const char *name)
{
    struct group *larger = realloc(groups->group, (groups->count + 1) * sizeof *larger);
    if (!larger)
        return NULL;
    groups->group = larger;
    larger[groups->count] = (struct group){.name = name ? strdup(name) : NULL};
    return name && !larger[groups->count].name ? NULL : &larger[groups->count++];
}

static void groups_clear(struct groups *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        free(groups->group[i].name);
    free(groups->group);
    *groups = (struct groups){0};
}

/* Skips undefined values, as the views do. */
static status add_to_group(const struct verifying *v, struct groups *groups, const struct subject *subject, size_t task,
                           struct error *error)
{
    size_t count;
    const struct metric *metrics = metric_list(&count);
    const struct accuracy_matrix *matrix = &subject->matrix.matrix;
    const char *name = task == SIZE_MAX ? NULL : subject->matrix.names[task];
    struct group *group = find_group(groups, name);
    if (!group && !(group = add_group(groups, name)))
        return out_of_memory(v, error);
    for (size_t i = 0; i < count; i++) {
        double value = task == SIZE_MAX ? metric_mean(&metrics[i], matrix) : metric_of_task(&metrics[i], matrix, task);
        if (!isnan(value))
            moments_add(&group->metric[i], value);
    }
    return OK;
}

static status add_to_groups(const struct verifying *v, struct groups *groups, const struct subject *subject,
                            struct error *error)
{
    const struct accuracy_matrix *matrix = &subject->matrix.matrix;
    for (size_t task = 0; task < matrix->tasks; task++)
        if (column_complete(matrix, task))
            TRY(add_to_group(v, groups, subject, task, error));
    return all_complete(matrix) ? add_to_group(v, groups, subject, SIZE_MAX, error) : OK;
}

/* The views' columns; their variances lose digits (mean of squares less square of the mean). */
static const struct derived {
    const char *column, *metric;
    bool variance;
} derived[] = {{"transfer", "transfer", false},
               {"transfer_variance", "transfer", true},
               {"average", "average", false},
               {"average_variance", "average", true},
               {"last", "last", false},
               {"last_variance", "last", true},
               {"forgetting", "forgetting", false},
               {"backward_transfer", "backward_transfer", false},
               {"gain", "gain", false}};

enum { NAME = 1, FIRST_DERIVED };

static void compare_derived(const struct verifying *v, const struct groups *groups, const struct group *group,
                            struct statement *row)
{
    size_t count;
    const struct metric *metrics = metric_list(&count);
    for (size_t i = 0; i < sizeof derived / sizeof *derived; i++) {
        size_t index = (size_t)(metric_find(derived[i].metric) - metrics);
        const struct moments *moments = &group->metric[index];
        double variance = moments->count > 1 ? moments->squares / (moments->count - 1) : (double)NAN;
        double expected = moments->count == 0 ? (double)NAN : derived[i].variance ? variance : moments->mean;
        double found = row ? real_of(row, FIRST_DERIVED + i) : (double)NAN;
        if (agree(expected, found) || (derived[i].variance && fabs(expected - found) < 1e-6))
            continue;
        char where[300];
        snprintf(where, sizeof where, "%s, configuration %.12s%s%s, %s",
                 group->name ? "task_leaderboard" : "leaderboard", groups->hash, group->name ? ", " : "",
                 group->name ? group->name : "", derived[i].column);
        verify_fault_real(v, 0, "leaderboard", where, expected, found);
    }
}

static status open_leaderboard(struct cursor *cursor, const struct verifying *v, const char *view, const char *name,
                               struct error *error)
{
    struct text sql = {0};
    text_add(&sql, "SELECT suite_hash, %s", name);
    for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
        text_add(&sql, ", %s", derived[i].column);
    text_add(&sql, " FROM %s ORDER BY 1, 2", view);
    status result = cursor_open(cursor, v, &sql, error);
    text_free(&sql);
    return result;
}

/* A leaderboard's rows up to this configuration. */
static status check_leaderboard(const struct verifying *v, struct cursor *cursor, struct groups *groups,
                                struct error *error)
{
    for (int order; cursor->row && (order = strcmp(statement_text(cursor->rows, HASH), groups->hash)) <= 0;) {
        bool named = statement_value(cursor->rows, NAME).kind == VALUE_TEXT;
        struct group *group = order == 0 ? find_group(groups, named ? statement_text(cursor->rows, NAME) : NULL) : NULL;
        if (group) {
            group->seen = true;
            compare_derived(v, groups, group, cursor->rows);
        } else {
            verify_fault(v, &(struct verify_fault){0, "leaderboard", statement_text(cursor->rows, HASH),
                                                   "none: no finished run is complete", "a row"});
        }
        TRY(statement_step(cursor->rows, &cursor->row, error));
    }
    return OK;
}

static status end_groups(const struct verifying *v, struct views *views, struct groups *groups, struct error *error)
{
    if (v->verification->count == 0) {
        TRY(check_leaderboard(v, &views->leaderboard, groups, error));
        TRY(check_leaderboard(v, &views->task_leaderboard, groups, error));
        for (size_t i = 0; i < groups->count; i++)
            if (!groups->group[i].seen)
                compare_derived(v, groups, &groups->group[i], NULL);
    }
    groups_clear(groups);
    return OK;
}

/* --- All runs --- */

static status check_run(const struct verifying *v, struct views *views, struct groups *groups, struct subject *subject,
                        struct error *error)
{
    TRY(store_read_matrix(v->store, subject->run, &subject->matrix, error));
    status result = OK;
    if (subject->finished)
        check_cells(v, subject);
    if (subject->finished)
        result = add_to_groups(v, groups, subject, error);
    if (result == OK)
        result = check_task_metrics(v, &views->task_metrics, subject, error);
    if (result == OK)
        result = check_mean_metrics(v, &views->metrics, subject, error);
    run_matrix_free(&subject->matrix);
    return result;
}

static status check_runs(const struct verifying *v, struct statement *runs, struct views *views, struct groups *groups,
                         int64_t *count, struct error *error)
{
    for (bool row;;) {
        TRY(statement_step(runs, &row, error));
        if (!row)
            return end_groups(v, views, groups, error);
        struct subject subject = {.run = statement_integer(runs, 0),
                                  .hash = statement_text(runs, 1),
                                  .method = statement_text(runs, 2),
                                  .finished = statement_integer(runs, 3) != 0};
        if (!verify_wants(v, subject.run))
            continue;
        if (strcmp(subject.hash, groups->hash) != 0) {
            TRY(end_groups(v, views, groups, error));
            snprintf(groups->hash, sizeof groups->hash, "%s", subject.hash);
        }
        TRY(check_run(v, views, groups, &subject, error));
        ++*count;
    }
}

static status open_views(struct views *views, const struct verifying *v, struct error *error)
{
    TRY(open_metrics(&views->task_metrics, v, "task_metrics", "task", error));
    TRY(open_metrics(&views->metrics, v, "metrics", "NULL", error));
    TRY(open_leaderboard(&views->leaderboard, v, "leaderboard", "NULL", error));
    return open_leaderboard(&views->task_leaderboard, v, "task_leaderboard", "name", error);
}

status verify_metrics(const struct verifying *v, struct error *error)
{
    struct statement *runs;
    struct groups groups = {0};
    struct views views = {.metrics = {0}};
    int64_t count = 0;
    TRY(statement_open(&runs, v->store->database,
                       "SELECT run, suite_hash, method, status = 'finished' FROM runs ORDER BY suite_hash, run",
                       error));
    status result = open_views(&views, v, error);
    if (result == OK)
        result = check_runs(v, runs, &views, &groups, &count, error);
    views_close(&views);
    statement_close(runs);
    groups_clear(&groups);
    if (result == OK)
        verify_checked(v, "runs", count);
    return result;
}
