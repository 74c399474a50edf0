#include "results/report/data.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/embedded.h"
#include "results/metrics.h"
#include "results/query/internal.h"
#include "results/store/contents.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(report_scripts);

enum { BOARDS_MOST = 4 };

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

/* --- Reading --- */

status report_script(struct report *report, const char *name, struct error *error)
{
    const struct embedded_file *file = report_scripts;
    while (strcmp(file->name, name) != 0)
        file++;
    return database_execute(report->store->database, (const char *)file->data, error);
}

static void is_incidental(void *context, const char *key, const char *value, struct text *answer)
{
    const struct report_request *request = context;
    if (request->incidental != NULL && request->incidental(key, value))
        text_add(answer, "yes");
}

/* The settings and contents of 2000 configurations at most, and of as many boards as are drawn. */
static status load_settings(struct report *report, struct error *error)
{
    struct database *database = report->store->database;
    TRY(database_add_function(database, "is_incidental", is_incidental, (void *)report->request, error));
    TRY(contents_read(report->store,
                      "SELECT 10 * number + board, run FROM temp.page_configurations WHERE board <= 4 "
                      "ORDER BY number LIMIT 2000",
                      error));
    return database_execute(database,
                            "INSERT INTO temp.page_settings SELECT hash, key, value, content = 0 AND "
                            "is_incidental(key, value) IS NOT NULL FROM run_values JOIN temp.page_configurations "
                            "ON place = 10 * number + board",
                            error);
}

static status load_metric_names(struct report *report, struct error *error)
{
    size_t count;
    const struct metric *metrics = metric_list(&count);
    TRY(database_execute(
        report->store->database,
        "DROP TABLE IF EXISTS temp.metric_names; CREATE TEMP TABLE metric_names (place INTEGER PRIMARY "
        "KEY, metric, title, formula, source, best)",
        error));
    for (size_t i = 0; i < count; i++)
        TRY(database_run(report->store->database, "INSERT INTO temp.metric_names VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                         VALUES(value_integer((int64_t)i), value_text(metrics[i].name), value_text(metrics[i].title),
                                value_text(metrics[i].formula), value_text(metrics[i].source),
                                value_text(metrics[i].lower_is_better ? "lowest" : "highest")),
                         error));
    return OK;
}

static status count(struct report *report, const char *sql, int64_t *number, struct error *error)
{
    return database_integer(report->store->database, sql, number, error);
}

status report_load(struct report *report, struct error *error)
{
    int64_t complete;
    TRY(query_choose(report->store, &report->request->filter, error));
    TRY(report_script(report, "configurations.sql", error));
    TRY(count(report, "SELECT count(*) FROM temp.page_members", &report->runs, error));
    TRY(count(report, "SELECT coalesce(sum(finished), 0) FROM temp.page_members", &report->finished, error));
    TRY(count(report, "SELECT count(DISTINCT hash) FROM temp.page_members", &report->configurations, error));
    TRY(count(report, "SELECT coalesce(max(board), 0) FROM temp.page_configurations", &report->boards, error));
    TRY(count(report, "SELECT EXISTS (SELECT 1 FROM temp.page_members WHERE finished AND last IS NOT NULL)", &complete,
              error));
    report->complete = complete != 0;
    if (report->boards > BOARDS_MOST) {
        report->boards_left_out = report->boards - BOARDS_MOST;
        report->boards = BOARDS_MOST;
    }
    TRY(load_settings(report, error));
    return load_metric_names(report, error);
}

/* --- Boards --- */

static status take_asked(struct report *report, int64_t number, struct error *error)
{
    const struct report_request *request = report->request;
    TRY(database_execute(report->store->database,
                         "DROP TABLE IF EXISTS temp.page_board; CREATE TEMP TABLE page_board (board, dataset); "
                         "CREATE TEMP TABLE IF NOT EXISTS asked (place INTEGER PRIMARY KEY, key TEXT); "
                         "DELETE FROM temp.asked",
                         error));
    for (size_t i = 0; i < request->by_count; i++)
        if (strchr(request->by[i], '.') != NULL) /* others, such as "policy", are part of a configuration's label */
            TRY(database_run(report->store->database, "INSERT INTO temp.asked (key) VALUES (?1)",
                             VALUES(value_text(request->by[i])), error));
    return database_run(report->store->database, "INSERT INTO temp.page_board VALUES (?1, ?2)",
                        VALUES(value_integer(number), value_text(request->filter.dataset)), error);
}

/* Rows of one column of numbers and one of texts. */
static status read_rows(struct report *report, const char *sql, struct table *table, struct error *error)
{
    return query_rows(report->store, sql, &report->request->filter, table, error);
}

static status read_title(struct report *report, struct board *board, struct error *error)
{
    struct table table = {0};
    status result =
        read_rows(report,
                  "SELECT count(*) || iif(count(*) = 1, ' task: ', ' tasks: ') || group_concat(name, ', ') FILTER "
                  "(WHERE task < 3) || iif(count(*) > 3, ', …', '') FROM board",
                  &table, error);
    board->title = result == OK ? report_copy(report, table_cell_at(&table, 0, 0)->text) : "";
    table_free(&table);
    return result;
}

static status read_legend(struct report *report, struct board *board, struct error *error)
{
    struct table table = {0};
    status result =
        read_rows(report, "SELECT colour, legend FROM configurations WHERE colour IS NOT NULL", &table, error);
    for (size_t row = 0; result == OK && row < table_rows(&table); row++)
        board->legend[table_cell_at(&table, row, 0)->integer] =
            report_copy(report, table_cell_at(&table, row, 1)->text);
    table_free(&table);
    return result;
}

static status read_runs(struct report *report, struct board *board, struct error *error)
{
    struct table table = {0};
    status result = read_rows(report, "SELECT run FROM members", &table, error);
    board->run = report_take(report, table_rows(&table) + 1, sizeof *board->run);
    for (size_t row = 0; result == OK && board->run != NULL && row < table_rows(&table); row++)
        board->run[board->runs++] = table_cell_at(&table, row, 0)->integer;
    table_free(&table);
    return result;
}

status report_board(struct report *report, int64_t number, struct board *board, struct error *error)
{
    *board = (struct board){.number = number};
    TRY(take_asked(report, number, error));
    TRY(report_script(report, "board.sql", error));
    TRY(read_title(report, board, error));
    TRY(read_legend(report, board, error));
    TRY(read_runs(report, board, error));
    return report_check(report, error);
}
