/* The page around the sections: head, style, switch, contents, script. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "core/digest.h"
#include "core/embedded.h"
#include "results/report/folder.h"
#include "results/report/html.h"
#include "results/report/part.h"

EMBEDDED_FILES(report_files);

/* --- Contents --- */

/* Where sections are written: links to them, and all of them. */
struct contents {
    struct text nav, body;
};

static void add_link(struct text *nav, const char *id, const char *title)
{
    html_element(nav, "<a href=\"#", id, "\">");
    html_element(nav, "", title, "</a>\n");
}

/* What follows the number in "130 Router Choice of the router"; "": the question goes on with the section before it. */
static const char *heading_of(const struct question *question)
{
    const char *line = question->shown[ON_PAGE] + strcspn(question->shown[ON_PAGE], " ");
    return line + strspn(line, " ");
}

/* A section that writes nothing has no place on the page. */
static void end_section(struct contents *contents, const struct section_call *call, const struct question *question)
{
    struct text *body = &contents->body, *page = call->page;
    const char *heading = heading_of(question);
    size_t brief = strcspn(heading, " ");
    if (page->size > 0) {
        const char *id = report_format(call->report, "%ssection-%s", call->prefix, question->name);
        add_link(&contents->nav, id, report_format(call->report, "%.*s", (int)brief, heading));
        text_add(body, "<section>\n");
        html_heading(body, 2, id, heading + brief + strspn(heading + brief, " "));
        text_add_bytes(body, page->data, page->size);
        text_add(body, "</section>\n");
    }
    text_clear(page);
}

static status add_sections(const struct section_call *call, const struct questions *questions,
                           struct contents *contents, struct error *error)
{
    const struct question *next = questions->question, *end = next + questions->count;
    while (next < end) {
        const struct question *first = next;
        do
            TRY(part_write(call, next++, error));
        while (next < end && *heading_of(next) == 0);
        end_section(contents, call, first);
    }
    return OK;
}

static status add_board_heading(struct report *report, const char *prefix, struct contents *contents,
                                struct error *error)
{
    struct table title = {0};
    const char *id = report_format(report, "%stasks", prefix);
    status result =
        report_ask(report,
                   "SELECT count(*) || iif(count(*) = 1, ' task: ', ' tasks: ') || group_concat(name, ', ') "
                   "FILTER (WHERE task < 3) || iif(count(*) > 3, ', …', '') FROM board",
                   &title, error);
    if (result == OK) {
        html_heading(&contents->body, 1, id, table_cell_at(&title, 0, 0)->text);
        text_add(&contents->nav, "<b>");
        add_link(&contents->nav, id, table_cell_at(&title, 0, 0)->text);
        text_add(&contents->nav, "</b>");
    }
    table_free(&title);
    return result;
}

static status add_board(struct report *report, int64_t number, const struct questions *questions,
                        struct contents *contents, struct error *error)
{
    struct text page = {0};
    struct section_call call = {.report = report, .prefix = "", .page = &page};
    TRY(report_board(report, number, error));
    if (report->boards > 1) {
        call.prefix = report_format(report, "board%" PRId64 "-", number);
        TRY(add_board_heading(report, call.prefix, contents, error));
    }
    status result = add_sections(&call, questions, contents, error);
    text_free(&page);
    return result;
}

/* --- Head --- */

static void add_file(struct text *html, const char *name)
{
    const struct embedded_file *file = report_files;
    while (strcmp(file->name, name) != 0)
        file++;
    text_add_bytes(html, (const char *)file->data, file->size);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Only the script with the nonce runs, and nothing is loaded: whatever a database says stays text. */
static void add_head(struct text *html, const struct report *report, const char *nonce)
{
    text_add(html,
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" REPORT_MARK "\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
             "img-src data:; base-uri 'none'; form-action 'none'; script-src 'nonce-%s'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n",
             nonce);
    html_element(html, "<title>", file_name(store_path(report->store)), " – mtil report</title>\n<style>");
    add_file(html, "style.css");
    text_add(html, "</style>\n</head>\n<body>\n");
}

/* What was asked for. */
static void add_conditions(struct text *html, struct report *report)
{
    struct query_filter filter = report->request->filter;
    const char *line = "";
    for (size_t i = 0; query_filter_name(i) != NULL; i++)
        if (*query_filter_text(&filter, i) != NULL)
            line = report_format(report, "%s%s%s %s", line, *line != 0 ? ", " : "Only ", query_filter_name(i),
                                 *query_filter_text(&filter, i));
    if (*line != 0)
        html_element(html, "<p class=\"note\">", line, ".</p>\n");
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void add_header(struct text *html, struct report *report)
{
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
    html_element(html, "<header>\n<div><p class=\"kind\">mtil report</p><h1>", file_name(store_path(report->store)),
                 "</h1>\n");
    text_add(html,
             "<p class=\"facts\">%" PRId64 " run%s, %" PRId64 " finished; %" PRId64
             " configuration%s. Written %s.</p>\n",
             report->runs, plural(report->runs), report->finished, report->configurations,
             plural(report->configurations), date);
    add_conditions(html, report);
    text_add(html, "</div>\n<div class=\"tools\"><label id=\"filter\" hidden>Filter <input type=\"search\" "
                   "placeholder=\"words of a configuration\"></label>\n<button type=\"button\" id=\"theme\" "
                   "hidden>Dark</button></div>\n</header>\n");
}

static void add_page(struct text *html, struct report *report, const struct contents *contents)
{
    char nonce[DIGEST_SIZE]; /* a name cannot hold the digest of the page that it is in */
    digest_bytes(contents->body.data, contents->body.size, nonce);
    add_head(html, report, nonce);
    add_header(html, report);
    text_add(html, "<nav aria-label=\"Contents\">\n%s</nav>\n<main>\n", contents->nav.data);
    if (report->boards == 0)
        text_add(html, "<p class=\"note\">There is no run to report on.</p>\n");
    if (report->boards_left_out > 0)
        text_add(html,
                 "<p class=\"note\">Left out: %" PRId64 " more sequences of tasks, each with fewer configurations. A "
                 "suite or setting given to mtil report shows them.</p>\n",
                 report->boards_left_out);
    text_add_bytes(html, contents->body.data, contents->body.size);
    text_add(html, "</main>\n<script nonce=\"%s\">", nonce);
    add_file(html, "script.js");
    text_add(html, "</script>\n</body>\n</html>\n");
}

status page_write(struct report *report, struct text *html, struct error *error)
{
    struct contents contents = {0};
    struct questions questions;
    text_add(&contents.nav, "%s", "");
    text_add(&contents.body, "%s", "");
    status result = questions_open_page(&questions, report->request->questions, error);
    for (int64_t i = 1; i <= report->boards && result == OK; i++)
        result = add_board(report, i, &questions, &contents, error);
    questions_close(&questions);
    if (result == OK)
        add_page(html, report, &contents);
    text_free(&contents.nav);
    text_free(&contents.body);
    return result;
}
