#include "results/report.h"

#include <assert.h>
#include <stdlib.h>

#include "core/file.h"
#include "results/query/internal.h"
#include "results/report/data.h"
#include "results/report/folder.h"
#include "results/store/store_internal.h"

static status write_page(struct report *report, struct error *error)
{
    struct text html = {0};
    char *path = path_format("%s/index.html", report->folder);
    status result = page_write(report, &html, error);
    NEXT(result, file_write(path, html.data, html.size, error));
    free(path);
    text_free(&html);
    return result;
}

static status fill_folder(struct report *report, struct error *error)
{
    char *figures = path_format("%s/" REPORT_FIGURES, report->folder);
    status result = report->request->figures ? directory_create(figures, error) : OK;
    free(figures);
    NEXT(result, query_check_filter(report->store, &report->request->filter, error));
    NEXT(result, report_load(report, error));
    NEXT(result, write_page(report, error));
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
    /* One state of the database, though runs go on meanwhile; its end takes the temporary tables away. */
    status result = database_execute(store->database, "BEGIN", error);
    NEXT(result, fill_folder(&report, error));
    report_free(&report);
    database_rollback(store->database);
    *outcome = (struct report_outcome){
        .runs = (size_t)report.runs, .configurations = (size_t)report.configurations, .figures = report.figures};
    if (result == OK)
        return report_folder_commit(&folder, error);
    report_folder_abandon(&folder);
    return result;
}
