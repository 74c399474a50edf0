#include "results/report/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "results/metrics.h"
#include "results/query/internal.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(report_scripts);

/* --- Memory --- */

const char *report_format(struct report *report, const char *format, ...)
{
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_add_list(&text, format, arguments);
    va_end(arguments);
    GROW(report->memory, report->taken);
    return report->memory[report->taken++] = text.data;
}

void report_release(struct report *report, size_t taken)
{
    while (report->taken > taken)
        free(report->memory[--report->taken]);
}

void report_free(struct report *report)
{
    comparison_free(&report->comparison);
    file_group_abandon(&report->files);
    report_release(report, 0);
    free(report->memory);
    text_free(&report->nav);
    text_free(&report->body);
}

status report_stopped(const struct report *report, struct error *error)
{
    const struct report_request *request = report->request;
    if (!stop_requested(request->stop))
        return OK;
    return error_set(error, ERROR_STOPPED, "stopped; nothing was written to %s", request->folder);
}

/* --- All boards --- */

static status run_script(struct report *report, const char *name, struct error *error)
{
    SCOPED(text_free) struct text sql = {0};
    metrics_expand(&sql, embedded_text(report_scripts, name), NULL);
    return database_execute(report->store->database, sql.data, error);
}

/* The comparison of mtil compare. */
static status compare(struct report *report, struct error *error)
{
    const struct report_request *request = report->request;
    int64_t complete;
    TRY(database_integer(report->store->database,
                         "SELECT EXISTS (SELECT 1 FROM page_members WHERE finished AND last IS NOT NULL)", &complete,
                         error));
    if (request->by_count == 0 || !complete)
        return OK;
    report->compared =
        (struct comparison_request){.filter = request->filter, .by = request->by, .by_count = request->by_count};
    return compare_runs(report->store, &report->compared, &report->comparison, error);
}

status report_load(struct report *report, struct error *error)
{
    struct database *database = report->store->database;
    TRY(query_choose(report->store, &report->request->filter, error));
    TRY(query_label(report->store, error));
    TRY(run_script(report, "page.sql", error));
    TRY(database_integer(database, "SELECT count(*) FROM page_members", &report->runs, error));
    TRY(database_integer(database, "SELECT count(DISTINCT hash) FROM page_members", &report->configurations, error));
    TRY(database_integer(database, "SELECT min(max(board), 4) FROM page_configurations", &report->boards, error));
    TRY(compare(report, error));
    return database_execute(database, "SAVEPOINT board", error);
}

/* --- A board --- */

/* What was asked for; columns of runs, such as "policy", are part of a configuration's label. */
static status read_request(struct report *report, int64_t number, struct error *error)
{
    const struct report_request *request = report->request;
    struct database *database = report->store->database;
    TRY(database_execute(database, "DELETE FROM asked", error)); /* what the comparison asked for */
    for (size_t i = 0; i < request->by_count; i++)
        if (strchr(request->by[i], '.') != NULL)
            TRY(database_run(database, "INSERT INTO asked (key) VALUES (?1)", VALUES(value_text(request->by[i])),
                             error));
    return database_run(database, "INSERT INTO page VALUES (?1, ?2, ?3, ?4)",
                        VALUES(value_integer(number), value_text(request->filter.dataset),
                               value_integer((int64_t)request->best), value_text(report->comparison.by)),
                        error);
}

status report_board(struct report *report, int64_t number, struct error *error)
{
    struct database *database = report->store->database;
    TRY(database_execute(database, "ROLLBACK TO board", error));
    TRY(read_request(report, number, error));
    TRY(run_script(report, "board.sql", error));
    TRY(query_contents(report->store, "SELECT number, run FROM configurations ORDER BY number LIMIT 2000", error));
    TRY(database_execute(database,
                         "INSERT INTO differing SELECT place, key, value, NOT content AND is_incidental(key, value) "
                         "FROM run_values",
                         error));
    return run_script(report, "colours.sql", error);
}

/* --- Values of an answer --- */

static const struct table_cell *cell_of(const struct part *part, size_t row, const char *column)
{
    static const struct table_cell empty = {.kind = CELL_EMPTY};
    size_t at = query_column(part->rows, column);
    return at != SIZE_MAX ? table_cell_at(part->rows, row, at) : &empty;
}

const char *part_text(const struct part *part, size_t row, const char *column)
{
    const struct table_cell *cell = cell_of(part, row, column);
    return cell->kind == CELL_TEXT      ? cell->text
           : cell->kind == CELL_INTEGER ? report_format(part->report, "%" PRId64, cell->integer)
           : cell->kind == CELL_REAL    ? report_format(part->report, "%.15g", cell->real)
                                        : "";
}

double part_real(const struct part *part, size_t row, const char *column)
{
    return table_cell_real(cell_of(part, row, column));
}
