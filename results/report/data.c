#include "results/report/data.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results/metrics.h"
#include "results/query/internal.h"
#include "results/statistics/statistics.h"
#include "results/store/store_internal.h"

#define CONFIDENCE 0.95

enum { BOARDS_MOST = 4 };

const char *const report_fields[REPORT_FIELDS] = {"suite",     "setting",    "method", "policy",   "selector",
                                                  "selection", "task_order", "model",  "precision"};

/* --- Memory --- */

void *report_take(struct report *report, size_t count, size_t size)
{
    void *taken = arena_take_zeroed(&report->arena, array_size(count, size));
    report->failed |= taken == NULL;
    return taken;
}

const char *report_format(struct report *report, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *string = length < 0 ? NULL : report_take(report, (size_t)length + 1, 1);
    if (string != NULL)
        vsnprintf(string, (size_t)length + 1, format, again);
    va_end(again);
    va_end(arguments);
    report->failed |= string == NULL;
    return string != NULL ? string : "";
}

const char *report_copy(struct report *report, const char *string)
{
    return report_format(report, "%s", string);
}

status report_check(const struct report *report, struct error *error)
{
    return report->failed ? error_set(error, ERROR_MEMORY, "%s: out of memory for a report", store_path(report->store))
                          : OK;
}

status report_stopped(const struct report *report, struct error *error)
{
    const struct report_request *request = report->request;
    if (request->stopped == NULL || !request->stopped(request->context))
        return OK;
    return error_set(error, ERROR_STOPPED, "stopped; nothing was written to %s", request->folder);
}

status report_values(struct report *report, const struct configuration *configuration, struct setting_values *values,
                     struct error *error)
{
    TRY(setting_values_read(values, report->store, configuration->run[0].run, error));
    return contents_add(&report->contents, configuration->run[0].run, values, error);
}

bool report_is_incidental(const struct report *report, const char *key, const char *a, const char *b)
{
    bool (*incidental)(const char *, const char *) = report->request->incidental;
    return incidental != NULL && !contents_has_key(key) && (a == NULL || incidental(key, a)) &&
           (b == NULL || incidental(key, b));
}

/* --- Reading --- */

double row_real(struct statement *row, size_t column)
{
    struct value value = statement_value(row, column);
    return value.kind == VALUE_REAL ? value.real : value.kind == VALUE_INTEGER ? (double)value.integer : (double)NAN;
}

static status each_row(struct statement *statement, report_row *take, void *context, struct error *error)
{
    for (bool row;;) {
        TRY(statement_step(statement, &row, error));
        if (!row)
            return OK;
        take(context, statement);
    }
}

status report_rows(struct report *report, const char *sql, int64_t run, report_row *take, void *context,
                   struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, report->store->database, sql, error));
    status result = statement_bind(statement, VALUES(value_integer(run)), error);
    if (result == OK)
        result = each_row(statement, take, context, error);
    statement_close(statement);
    return result;
}

static status chosen_rows(struct report *report, const char *sql, report_row *take, void *context, struct error *error)
{
    struct statement *statement;
    TRY(query_choose(report->store, &report->request->filter, error));
    TRY(statement_open(&statement, report->store->database, sql, error));
    status result = statement_bind(statement, NO_VALUES, error);
    if (result == OK)
        result = each_row(statement, take, context, error);
    statement_close(statement);
    return result;
}

/* --- Runs and configurations --- */

static void take_counts(void *context, struct statement *row)
{
    struct report *report = context;
    size_t runs = (size_t)statement_integer(row, 0), configurations = (size_t)statement_integer(row, 1);
    report->run = report_take(report, runs + 1, sizeof *report->run);
    report->configuration = report_take(report, configurations + 1, sizeof *report->configuration);
}

static void add_configuration(struct report *report, const char *hash)
{
    report->configuration[report->configuration_count++] =
        (struct configuration){.hash = report_copy(report, hash), .run = &report->run[report->run_count]};
}

/* Rows come by configuration, finished runs first. */
static void take_run(void *context, struct statement *row)
{
    enum { HASH = 3, FIRST_METRIC };
    struct report *report = context;
    const char *hash = statement_text(row, HASH);
    size_t count = report->configuration_count;
    if (count == 0 || strcmp(report->configuration[count - 1].hash, hash) != 0)
        add_configuration(report, hash);
    struct configuration *configuration = &report->configuration[report->configuration_count - 1];
    struct report_run *run = &report->run[report->run_count++];
    *run = (struct report_run){.run = statement_integer(row, 0),
                               .seed = statement_integer(row, 1),
                               .status = report_copy(report, statement_text(row, 2))};
    run->finished = strcmp(run->status, "finished") == 0;
    for (size_t i = 0; i < REPORT_METRICS; i++)
        run->metric[i] = row_real(row, FIRST_METRIC + i);
    configuration->runs++;
    configuration->finished += run->finished;
}

static status load_runs(struct report *report, struct error *error)
{
    TRY(chosen_rows(report, "SELECT count(*), count(DISTINCT suite_hash) FROM chosen", take_counts, report, error));
    TRY(report_check(report, error));
    return chosen_rows(report,
                       "SELECT chosen.run, seed, status, suite_hash, transfer, average, last, forgetting, "
                       "backward_transfer, forward_transfer, gain, zero_shot FROM chosen LEFT JOIN metrics USING (run) "
                       "ORDER BY suite_hash, status <> 'finished', seed, chosen.run",
                       take_run, report, error);
}

static struct estimate estimate_of(const double *value, size_t n)
{
    struct estimate estimate = {.n = n, .mean = statistics_mean(value, n), .half = (double)NAN};
    if (n < 2)
        return estimate;
    struct interval interval = statistics_mean_interval(estimate.mean, statistics_sd(value, n), n, CONFIDENCE);
    estimate.half = (interval.high - interval.low) / 2;
    return estimate;
}

/* Over the finished runs that have the metric. */
static void estimate_metrics(struct report *report, struct configuration *configuration)
{
    double *values = report_take(report, configuration->runs, sizeof *values);
    configuration->used = configuration->finished ? configuration->finished : configuration->runs;
    for (size_t metric = 0; values != NULL && metric < REPORT_METRICS; metric++) {
        size_t known = 0;
        for (size_t i = 0; i < configuration->finished; i++)
            if (!isnan(configuration->run[i].metric[metric]))
                values[known++] = configuration->run[i].metric[metric];
        configuration->metric[metric] = estimate_of(values, known);
    }
}

struct fields {
    struct report *report;
    struct configuration *configuration;
};

static void take_fields(void *context, struct statement *row)
{
    struct fields *fields = context;
    for (size_t i = 0; i < REPORT_FIELDS; i++)
        fields->configuration->field[i] = report_copy(fields->report, statement_text(row, i));
}

static status load_fields(struct report *report, struct configuration *configuration, struct error *error)
{
    struct fields fields = {report, configuration};
    TRY(report_rows(report,
                    "SELECT suite, setting, method, policy, selector, selection, task_order, model, \"precision\" "
                    "FROM runs WHERE run = ?1",
                    configuration->run->run, take_fields, &fields, error));
    estimate_metrics(report, configuration);
    return report_check(report, error);
}

/* --- Boards --- */

struct names {
    struct report *report;
    size_t count, capacity;
    const char **name;
};

static void take_name(void *context, struct statement *row)
{
    struct names *names = context;
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? names->capacity * 2 : 16;
        const char **larger = report_take(names->report, capacity, sizeof *larger);
        if (larger == NULL)
            return;
        if (names->count > 0)
            memcpy(larger, names->name, names->count * sizeof *larger);
        names->name = larger;
        names->capacity = capacity;
    }
    names->name[names->count++] = report_copy(names->report, statement_text(row, 0));
}

static bool same_tasks(const struct board *board, const struct names *names)
{
    if (board->tasks != names->count)
        return false;
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(board->names[i], names->name[i]) != 0)
            return false;
    return true;
}

/* Boards grow by one place per configuration, which is more than enough. */
static struct board *find_board(struct report *report, const struct names *names)
{
    for (size_t i = 0; i < report->board_count; i++)
        if (same_tasks(&report->board[i], names))
            return &report->board[i];
    struct board *board = &report->board[report->board_count++];
    *board = (struct board){.names = names->name, .tasks = names->count};
    return board;
}

/* A run that ended before its tasks were recorded is on no board. */
static status place_configuration(struct report *report, struct configuration *configuration, struct error *error)
{
    struct arena_mark mark = arena_mark(&report->arena);
    struct names names = {.report = report};
    TRY(report_rows(report, "SELECT name FROM tasks WHERE run = ?1 ORDER BY task", configuration->run->run, take_name,
                    &names, error));
    TRY(report_check(report, error));
    if (names.count == 0)
        return OK;
    size_t boards = report->board_count;
    struct board *board = find_board(report, &names);
    if (report->board_count == boards)
        arena_release(&report->arena, mark);
    board->count++;
    configuration->board = (size_t)(board - report->board) + 1;
    return OK;
}

/* Those without a finished run last. */
static double sort_key(const struct configuration *configuration)
{
    if (configuration->finished == 0)
        return -2;
    double last = configuration->metric[LAST].mean;
    return isnan(last) ? -1 : last;
}

static int compare_configurations(const void *a, const void *b)
{
    const struct configuration *x = *(struct configuration *const *)a, *y = *(struct configuration *const *)b;
    if (sort_key(x) != sort_key(y))
        return sort_key(x) < sort_key(y) ? 1 : -1;
    return strcmp(x->hash, y->hash);
}

static int compare_boards(const void *a, const void *b)
{
    const struct board *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->names[0], y->names[0]);
}

static status fill_board(struct report *report, size_t number, struct error *error)
{
    struct board *board = &report->board[number];
    size_t count = 0;
    board->configuration = report_take(report, board->count, sizeof(struct configuration *));
    TRY(report_check(report, error));
    for (size_t i = 0; i < report->configuration_count; i++)
        if (report->configuration[i].board == number + 1)
            board->configuration[count++] = &report->configuration[i];
    qsort(board->configuration, count, sizeof(struct configuration *), compare_configurations);
    for (size_t i = 0; i < count; i++)
        board->finished += board->configuration[i]->finished > 0;
    size_t drawn = board->finished > 0 ? board->finished : count;
    board->shown = drawn < report->request->best ? drawn : report->request->best;
    return OK;
}

static status load_boards(struct report *report, struct error *error)
{
    report->board = report_take(report, report->configuration_count + 1, sizeof *report->board);
    TRY(report_check(report, error));
    for (size_t i = 0; i < report->configuration_count; i++)
        TRY(place_configuration(report, &report->configuration[i], error));
    for (size_t i = 0; i < report->board_count; i++)
        TRY(fill_board(report, i, error));
    qsort(report->board, report->board_count, sizeof *report->board, compare_boards);
    if (report->board_count > BOARDS_MOST) {
        report->boards_left_out = report->board_count - BOARDS_MOST;
        report->board_count = BOARDS_MOST;
    }
    return report_check(report, error);
}

status report_load(struct report *report, struct error *error)
{
    TRY(load_runs(report, error));
    TRY(report_check(report, error));
    for (size_t i = 0; i < report->configuration_count; i++)
        TRY(load_fields(report, &report->configuration[i], error));
    return load_boards(report, error);
}
