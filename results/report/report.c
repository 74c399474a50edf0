/* The folder of a report: written when everything is complete, and only over another report. */
#include "results/report.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "results/query/internal.h"
#include "results/report/data.h"
#include "results/store/store_internal.h"

#define PAGE "index.html"

enum { MARK_WITHIN = 512 };

static bool has_mark(const char *folder)
{
    struct bytes page = {0};
    char *path = path_format("%s/" PAGE, folder);
    bool found = file_read(path, FILE_LIMIT, &page, NULL) == OK &&
                 memmem(page.data, page.size < MARK_WITHIN ? page.size : MARK_WITHIN, REPORT_MARK, strlen(REPORT_MARK));
    bytes_free(&page);
    free(path);
    return found;
}

/* Somebody's notes beside the page would not belong there. */
static status check_target(const char *path, struct error *error)
{
    struct stat about;
    struct directory names = {0};
    char found[300] = "";
    if (path[0] == 0)
        return error_set(error, ERROR_ARGUMENT, "the name of the report's folder is empty");
    if (lstat(path, &about) != 0)
        return errno == ENOENT ? OK : error_errno(error, errno, "%s: cannot look there", path);
    if (S_ISDIR(about.st_mode)) {
        temporary_clear(path);
        TRY(directory_list(&names, path, error));
    } else
        snprintf(found, sizeof found, S_ISLNK(about.st_mode) ? "a link" : "a file");
    if (names.count > 0 && !has_mark(path))
        snprintf(found, sizeof found, "a folder with another page in it");
    for (size_t i = 0; i < names.count; i++)
        if (strcmp(names.names[i], PAGE) != 0 && strcmp(names.names[i], REPORT_FIGURES) != 0)
            snprintf(found, sizeof found, "a folder with \"%.200s\" in it", names.names[i]);
    directory_free(&names);
    if (found[0] == 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: expected a new name, an empty folder or a report, found %s; name another folder", path,
                     found);
}

/* Figures of an earlier report that this one does not have. */
static void remove_others(const struct report *report)
{
    struct directory names;
    char *folder = path_format("%s/" REPORT_FIGURES, report->request->folder);
    if (directory_list(&names, folder, NULL) == OK) {
        for (size_t i = 0; i < names.count; i++) {
            char *path = path_format("%s/%s", folder, names.names[i]);
            bool own = false;
            for (size_t k = 0; k < report->files.count && !own; k++)
                own = strcmp(report->files.paths[k], path) == 0;
            if (!own)
                unlink(path);
            free(path);
        }
        rmdir(folder); /* where there are none */
        directory_free(&names);
    }
    free(folder);
}

static status write_files(struct report *report, struct error *error)
{
    struct text html = {0};
    TRY(query_check_filter(report->store, &report->request->filter, error));
    TRY(report_load(report, error));
    status result = page_write(report, &html, error);
    NEXT(result,
         file_group_add(&report->files, PAGE, html.data, html.size, error)); /* the first one that gets its name */
    text_free(&html);
    return result;
}

status report_write(struct store *store, const struct report_request *request, struct report_outcome *outcome,
                    struct error *error)
{
    assert(request->best >= 1 && request->best <= REPORT_BEST);
    struct report report = {.store = store, .request = request};
    TRY(check_target(request->folder, error));
    bool is_new = !file_exists(request->folder);
    status result = file_group_begin(&report.files, request->folder, error);
    /* One state of the database, though runs go on meanwhile; its end takes the temporary tables away. */
    NEXT(result, database_execute(store->database, "BEGIN", error));
    NEXT(result, write_files(&report, error));
    NEXT(result, file_group_commit(&report.files, error));
    if (result == OK)
        remove_others(&report);
    *outcome = (struct report_outcome){
        .runs = (size_t)report.runs, .configurations = (size_t)report.configurations, .figures = report.figures};
    report_free(&report);
    database_rollback(store->database);
    if (result != OK && is_new)
        rmdir(request->folder);
    return result;
}
