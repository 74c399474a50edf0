#include "results/report.h"

#include <assert.h>
#include <stdlib.h>

#include "core/file.h"
#include "results/report/data.h"
#include "results/report/folder.h"
#include "results/report/page.h"
#include "results/store/store_internal.h"

#define ADDRESSES ((size_t)64 << 30) /* reserved, not used */

static status write_page(struct report *report, struct error *error)
{
    struct text html = {0};
    char *path = path_format("%s/index.html", report->folder);
    status result = path != NULL ? page_write(report, &html, error)
                                 : error_set(error, ERROR_MEMORY, "%s: no memory for its name", report->folder);
    if (result == OK)
        result = file_write(path, html.data, html.size, error);
    free(path);
    text_free(&html);
    return result;
}

static status create_figures(const struct report *report, struct error *error)
{
    if (!report->request->figures)
        return OK;
    char *path = path_format("%s/" REPORT_FIGURES, report->folder);
    status result = path != NULL ? directory_create(path, error)
                                 : error_set(error, ERROR_MEMORY, "%s: no memory for its name", report->folder);
    free(path);
    return result;
}

static status fill_folder(struct report *report, struct error *error)
{
    TRY(create_figures(report, error));
    TRY(report_load(report, error));
    TRY(label_configurations(report, error));
    TRY(report_compare(report, error));
    return write_page(report, error);
}

/* One state of the database, though runs go on meanwhile. */
static status fill_from_snapshot(struct report *report, struct error *error)
{
    TRY(arena_create(&report->arena, ADDRESSES, "report", error));
    status result = database_execute(report->store->database, "BEGIN", error);
    if (result == OK)
        result = query_check_filter(report->store, &report->request->filter, error);
    if (result == OK)
        result = fill_folder(report, error);
    database_rollback(report->store->database);
    if (report->comparison != NULL)
        comparison_free(report->comparison);
    arena_destroy(&report->arena);
    return result;
}

status report_write(struct store *store, const struct report_request *request, struct report_outcome *outcome,
                    struct error *error)
{
    assert(request->best >= 1 && request->best <= REPORT_BEST);
    struct report report = {.store = store, .request = request};
    struct report_folder folder;
    TRY(report_folder_begin(&folder, request->folder, error));
    report.folder = folder.fresh;
    status result = fill_from_snapshot(&report, error);
    *outcome = (struct report_outcome){
        .runs = (size_t)report.runs, .configurations = (size_t)report.configurations, .figures = report.figures};
    if (result == OK)
        return report_folder_commit(&folder, error);
    report_folder_abandon(&folder);
    return result;
}
