#include "results/report/page.h"

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

struct contents {
    struct text *nav, *body;
};

static void add_link(struct text *nav, const char *id, const char *title)
{
    text_add(nav, "<a href=\"#");
    html_escape(nav, id);
    text_add(nav, "\">");
    html_escape(nav, title);
    text_add(nav, "</a>\n");
}

/* What the head of a question says of its section: "130 Router Choice of the router". */
struct place {
    const char *brief, *title; /* title "": it goes on with the section before it */
};

static struct place read_place(struct report *report, const char *line)
{
    struct place place = {.brief = "", .title = ""};
    line += strcspn(line, " ");
    line += strspn(line, " ");
    size_t length = strcspn(line, " ");
    if (length > 0)
        place.brief = report_format(report, "%.*s", (int)length, line);
    line += length;
    place.title = report_copy(report, line + strspn(line, " "));
    return place;
}

/* A section that writes nothing has no place on the page. */
static void end_section(struct contents *contents, struct text *page, const struct section_call *call,
                        const struct place *place, const char *name)
{
    if (page->size > 0) {
        const char *id = section_name(call, report_format(call->report, "section-%s", name));
        add_link(contents->nav, id, place->brief);
        text_add(contents->body, "<section>\n");
        html_heading(contents->body, 2, id, place->title);
        text_add_bytes(contents->body, page->data, page->size);
        text_add(contents->body, "</section>\n");
    }
    contents->body->failed |= page->failed;
    text_free(page);
}

static status add_sections(const struct section_call *call, const struct questions *questions,
                           struct contents *contents, struct error *error)
{
    for (size_t next = 0; next < questions->count;) {
        const struct question *question = &questions->question[next];
        struct place place = read_place(call->report, question->shown[ON_PAGE]);
        do
            TRY(part_write(call, &questions->question[next++], error));
        while (next < questions->count &&
               *read_place(call->report, questions->question[next].shown[ON_PAGE]).title == 0);
        end_section(contents, call->page, call, &place, question->name);
    }
    return report_check(call->report, error);
}

static status add_board(struct report *report, int64_t number, const struct questions *questions,
                        struct contents *contents, struct error *error)
{
    struct board board;
    const char *prefix = report->boards > 1 ? report_format(report, "board%" PRId64 "-", number) : "";
    struct text page = {0};
    struct arena_mark mark = arena_mark(&report->arena);
    struct section_call call = {report, &board, prefix, &page};
    TRY(report_board(report, number, &board, error));
    if (report->boards > 1) {
        const char *id = report_format(report, "%stasks", prefix);
        html_heading(contents->body, 1, id, board.title);
        text_add(contents->nav, "<b>");
        add_link(contents->nav, id, board.title);
        text_add(contents->nav, "</b>");
    }
    status result = add_sections(&call, questions, contents, error);
    text_free(&page);
    arena_release(&report->arena, mark);
    return result;
}

/* --- Head --- */

static const struct embedded_file *find_file(const char *name)
{
    const struct embedded_file *file = report_files;
    while (file->name != NULL && strcmp(file->name, name) != 0)
        file++;
    return file;
}

static unsigned from_hexadecimal(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* A digest as the content security policy wants it: base64 of its 32 bytes. */
static void add_base64(struct text *html, const char *hexadecimal)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0, held = 0;
    for (size_t i = 0; hexadecimal[i] != 0; i++) {
        bits = bits << 4 | from_hexadecimal(hexadecimal[i]);
        held += 4;
        if (held >= 6) {
            held -= 6;
            text_add(html, "%c", digits[bits >> held & 63]);
        }
    }
    if (held > 0)
        text_add(html, "%c", digits[bits << (6 - held) & 63]);
    text_add(html, "=");
}

/* Only the one script runs, and nothing is loaded: whatever a database says stays text. */
static void add_policy(struct text *html)
{
    const struct embedded_file *script = find_file("script.js");
    char digest[DIGEST_SIZE];
    digest_bytes(script->data, script->size, digest);
    text_add(html, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                   "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; script-src 'sha256-");
    add_base64(html, digest);
    text_add(html, "'\">\n");
}

static void add_file(struct text *html, const char *element, const char *name)
{
    const struct embedded_file *file = find_file(name);
    text_add(html, "<%s>", element);
    text_add_bytes(html, (const char *)file->data, file->size);
    text_add(html, "</%s>\n", element);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void add_head(struct text *html, const struct report *report)
{
    text_add(html, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" REPORT_MARK "\n");
    add_policy(html);
    text_add(html, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>");
    html_escape(html, file_name(store_path(report->store)));
    text_add(html, " – mtil report</title>\n");
    add_file(html, "style", "style.css");
    text_add(html, "</head>\n<body>\n");
}

/* --- What was asked for --- */

static void add_condition(struct text *line, const char *name, const char *value)
{
    if (value != NULL)
        text_add(line, "%s%s %s", line->size ? ", " : "Only ", name, value);
}

static void add_conditions(struct text *html, struct report *report)
{
    const struct query_filter *filter = &report->request->filter;
    struct text line = {0};
    if (filter->run != 0)
        add_condition(&line, "run", report_format(report, "%lld", (long long)filter->run));
    if (filter->has_seed)
        add_condition(&line, "seed", report_format(report, "%lld", (long long)filter->seed));
    add_condition(&line, "where", filter->where);
    add_condition(&line, "suite", filter->suite);
    add_condition(&line, "setting", filter->setting);
    add_condition(&line, "method", filter->method);
    add_condition(&line, "policy", filter->policy);
    add_condition(&line, "selector", filter->selector);
    add_condition(&line, "status", filter->status);
    add_condition(&line, "dataset", filter->dataset);
    add_condition(&line, "since", filter->since);
    add_condition(&line, "before", filter->before);
    if (line.size > 0) {
        text_add(&line, ".");
        html_paragraph(html, "note", line.data != NULL ? line.data : "");
    }
    html->failed |= line.failed;
    text_free(&line);
}

static void add_header(struct text *html, struct report *report)
{
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
    text_add(html, "<header>\n<div><p class=\"kind\">mtil report</p><h1>");
    html_escape(html, file_name(store_path(report->store)));
    text_add(html,
             "</h1>\n<p class=\"facts\">%" PRId64 " run%s, %" PRId64 " finished; %" PRId64
             " configuration%s. Written %s.</p>\n",
             report->runs, report->runs == 1 ? "" : "s", report->finished, report->configurations,
             report->configurations == 1 ? "" : "s", date);
    add_conditions(html, report);
    text_add(html, "</div>\n<div class=\"tools\"><label id=\"filter\" hidden>Filter <input type=\"search\" "
                   "placeholder=\"words of a configuration\"></label>\n<button type=\"button\" id=\"theme\" "
                   "hidden>Dark</button></div>\n</header>\n");
}

static void add_notes(struct text *html, struct report *report)
{
    if (report->boards == 0)
        html_paragraph(html, "note", "There is no run to report on.");
    if (report->boards_left_out > 0)
        html_paragraph(html, "note",
                       report_format(report,
                                     "Left out: %" PRId64 " more sequences of tasks, each with fewer configurations. "
                                     "A suite or setting given to mtil report shows them.",
                                     report->boards_left_out));
}

static void add_page(struct text *html, struct report *report, const struct contents *contents)
{
    add_head(html, report);
    add_header(html, report);
    text_add(html, "<nav aria-label=\"Contents\">\n");
    if (contents->nav->size > 0)
        text_add_bytes(html, contents->nav->data, contents->nav->size);
    text_add(html, "</nav>\n<main>\n");
    add_notes(html, report);
    if (contents->body->size > 0)
        text_add_bytes(html, contents->body->data, contents->body->size);
    text_add(html, "</main>\n");
    add_file(html, "script", "script.js");
    text_add(html, "</body>\n</html>\n");
}

status page_write(struct report *report, struct text *html, struct error *error)
{
    struct text nav = {0}, body = {0};
    struct contents contents = {&nav, &body};
    struct questions questions;
    status result = questions_open_page(&questions, report->request->questions, error);
    for (int64_t i = 1; i <= report->boards && result == OK; i++)
        result = add_board(report, i, &questions, &contents, error);
    questions_close(&questions);
    if (result == OK) {
        add_page(html, report, &contents);
        report->failed |= html->failed || nav.failed || body.failed;
        result = report_check(report, error);
    }
    text_free(&nav);
    text_free(&body);
    return result;
}
