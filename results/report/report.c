/* The page around the sections, and the folder of a report: written when everything is complete, and only over another report. */
#include "results/report.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/digest.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/text.h"
#include "results/query/internal.h"
#include "results/report/data.h"
#include "results/report/html.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(report_scripts);
EMBEDDED_FILES(report_files);

#define PAGE "index.html"

enum { MARK_WITHIN = 512 };

/* --- Sections of the page --- */

/* What follows the number in "130 Router Choice of the router"; "": the question goes on with the section before it. */
static const char *heading_of(const struct question *question)
{
    const char *line = question->shown[ON_PAGE] + strcspn(question->shown[ON_PAGE], " ");
    return line + strspn(line, " ");
}

static void add_heading(struct report *report, int level, const char *id, const char *title, const char *link)
{
    text_add(&report->body, "%s<h%d id=\"%s\">", level == 1 ? "" : "<details class=\"section\" open><summary>", level,
             id);
    html_element(&report->body, "", title, "");
    text_add(&report->body, "</h%d>%s\n", level, level == 1 ? "" : "</summary>");
    text_add(&report->nav, "<a href=\"#%s\">", id);
    html_element(&report->nav, level == 1 ? "<b>" : "", link, level == 1 ? "</b></a>\n" : "</a>\n");
}

/* A question and those that go on with its section. One that writes nothing has no place on the page. */
static status add_section(struct report *report, const struct question **next, const struct question *end,
                          struct error *error)
{
    const struct question *first = *next;
    const char *heading = heading_of(first);
    int brief = (int)strcspn(heading, " ");
    struct text before = report->body;
    report->body = (struct text){0};
    status result = OK;
    do
        NEXT(result, section_write(report, (*next)++, error));
    while (result == OK && *next < end && *heading_of(*next) == 0);
    SCOPED(text_free) struct text section = report->body;
    report->body = before;
    if (section.size > 0) {
        add_heading(report, 2, report_format(report, "%ssection-%s", report->prefix, first->name),
                    heading + brief + strspn(heading + brief, " "), report_format(report, "%.*s", brief, heading));
        text_add_bytes(&report->body, section.data, section.size);
        text_add(&report->body, "</details>\n");
    }
    return result;
}

static status add_board(struct report *report, int64_t number, const struct questions *questions, struct error *error)
{
    const struct question *next = questions->question, *end = next + questions->count;
    TRY(report_board(report, number, error));
    report->prefix = "";
    if (report->boards > 1) {
        SCOPED(table_free) struct table title = {0};
        report->prefix = report_format(report, "board%" PRId64 "-", number);
        TRY(query_rows(
            report->store,
            "SELECT count(*) || iif(count(*) = 1, ' task: ', ' tasks: ') || group_concat(name, ', ') "
            "FILTER (WHERE task < 3) || iif(count(*) > 3, ', …', '') || coalesce((SELECT ' (' || setting || ')' "
            "FROM configurations JOIN runs USING (run) WHERE number = 1 AND (SELECT count(DISTINCT setting) "
            "FROM chosen) > 1), '') FROM board",
            &report->request->filter, &title, error));
        const char *words = table_cell_at(&title, 0, 0)->text;
        add_heading(report, 1, report_format(report, "%stasks", report->prefix), words, words);
    }
    while (next < end)
        TRY(add_section(report, &next, end, error));
    return OK;
}

/* --- The page --- */

/* The facts in the head of the page, and what was asked for and left out. */
static status add_notes(struct report *report, struct text *html, struct error *error)
{
    SCOPED(table_free) struct table notes = {0};
    struct query_filter filter = report->request->filter;
    const char *asked = "";
    status result =
        query_rows(report->store, embedded_text(report_scripts, "notes.sql"), &report->request->filter, &notes, error);
    for (size_t row = 0; row < table_rows(&notes); row++)
        if (notes.cell[row].kind == CELL_TEXT)
            html_element(html, row < 2 ? "<p class=\"facts\">" : "<p class=\"note\">", notes.cell[row].text, "</p>\n");
    for (size_t i = 0; query_filter_name(i) != NULL; i++)
        if (*query_filter_text(&filter, i) != NULL)
            asked = report_format(report, "%s%s%s %s", asked, *asked != 0 ? ", " : "Only ", query_filter_name(i),
                                  *query_filter_text(&filter, i));
    if (*asked != 0)
        html_element(html, "<p class=\"note\">", asked, ".</p>\n");
    return result;
}

/* Only the script with the nonce runs, and nothing is loaded: whatever a database says stays text. A name cannot hold the digest of
 * the page that it is in. */
static void fill(struct text *html, struct report *report, const struct text *notes)
{
    char nonce[DIGEST_SIZE];
    const char *path = store_path(report->store), *slash = strrchr(path, '/');
    SCOPED(text_free) struct text name = {0};
    digest_bytes(report->body.data, report->body.size, nonce);
    html_escape(&name, slash != NULL ? slash + 1 : path);
    const char *const places[] = {"{nonce}",  nonce,
                                  "{name}",   name.data,
                                  "{style}",  embedded_text(report_files, "style.css"),
                                  "{script}", embedded_text(report_files, "script.js"),
                                  "{notes}",  notes->data,
                                  "{nav}",    report->nav.data,
                                  "{body}",   report->body.data,
                                  NULL};
    text_add_replaced(html, embedded_text(report_files, "page.html"), places);
}

static status write_page(struct report *report, struct text *html, struct error *error)
{
    SCOPED(questions_close) struct questions questions = {0};
    SCOPED(text_free) struct text notes = {0};
    text_add(&report->nav, "%s", "");
    text_add(&report->body, "%s", "");
    TRY(add_notes(report, &notes, error));
    TRY(questions_open_page(&questions, report->request->questions, error));
    for (int64_t i = 1; i <= report->boards; i++)
        TRY(add_board(report, i, &questions, error));
    fill(html, report, &notes);
    return OK;
}

/* --- The folder --- */

static bool has_mark(const char *folder)
{
    SCOPED(bytes_free) struct bytes page = {0};
    OWNED char *path = path_format("%s/" PAGE, folder);
    return file_read_any(path, FILE_LIMIT, &page, NULL) == OK &&
           memmem(page.data, page.size < MARK_WITHIN ? page.size : MARK_WITHIN, REPORT_MARK, strlen(REPORT_MARK));
}

/* Somebody's notes beside the page would not belong there. */
static status check_target(const char *path, struct error *error)
{
    struct stat about;
    SCOPED(directory_free) struct directory names = {0};
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
    if (found[0] == 0)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: expected a new name, an empty folder or a report, found %s; name another folder", path,
                     found);
}

/* Figures of an earlier report that this one does not have. */
static void remove_others(const struct report *report)
{
    SCOPED(directory_free) struct directory names = {0};
    OWNED char *folder = path_format("%s/" REPORT_FIGURES, report->request->folder);
    if (directory_list(&names, folder, NULL) != OK)
        return;
    for (size_t i = 0; i < names.count; i++) {
        OWNED char *path = path_format("%s/%s", folder, names.names[i]);
        bool own = false;
        for (size_t k = 0; k < report->files.count && !own; k++)
            own = strcmp(report->files.paths[k], path) == 0;
        if (!own)
            unlink(path);
    }
    rmdir(folder); /* where there are none */
}

static status write_files(struct report *report, struct error *error)
{
    SCOPED(text_free) struct text html = {0};
    TRY(query_check_filter(report->store, &report->request->filter, error));
    TRY(report_load(report, error));
    TRY(write_page(report, &html, error));
    return file_group_add(&report->files, PAGE, html.data, html.size, error); /* the first one that gets its name */
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
