/* The page around the sections: contents, and what page.html says. */
#include <inttypes.h>
#include <string.h>

#include "core/digest.h"
#include "core/file.h"
#include "core/text.h"
#include "results/query/internal.h"
#include "results/report/data.h"
#include "results/report/html.h"
#include "results/store/store_internal.h"

EMBEDDED_FILES(report_files);
EMBEDDED_FILES(report_notes);
enum file { STYLE, SCRIPT, PAGE };

/* --- Sections --- */

/* What follows the number in "130 Router Choice of the router"; "": the question goes on with the section before it. */
static const char *heading_of(const struct question *question)
{
    const char *line = question->shown[ON_PAGE] + strcspn(question->shown[ON_PAGE], " ");
    return line + strspn(line, " ");
}

static void add_heading(struct report *report, int level, const char *id, const char *title, const char *link)
{
    text_add(&report->body, "<h%d id=\"%s\">", level, id);
    html_element(&report->body, "", title, "");
    text_add(&report->body, "</h%d>\n", level);
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
    struct text section = report->body;
    report->body = before;
    if (section.size > 0) {
        text_add(&report->body, "<section>\n");
        add_heading(report, 2, report_format(report, "%ssection-%s", report->prefix, first->name),
                    heading + brief + strspn(heading + brief, " "), report_format(report, "%.*s", brief, heading));
        text_add_bytes(&report->body, section.data, section.size);
        text_add(&report->body, "</section>\n");
    }
    text_free(&section);
    return result;
}

static status add_board(struct report *report, int64_t number, const struct questions *questions, struct error *error)
{
    const struct question *next = questions->question, *end = next + questions->count;
    TRY(report_board(report, number, error));
    report->prefix = "";
    if (report->boards > 1) {
        struct table title = {0};
        report->prefix = report_format(report, "board%" PRId64 "-", number);
        TRY(query_rows(report->store,
                       "SELECT count(*) || iif(count(*) = 1, ' task: ', ' tasks: ') || group_concat(name, ', ') "
                       "FILTER (WHERE task < 3) || iif(count(*) > 3, ', …', '') FROM board",
                       &report->request->filter, &title, error));
        const char *words = table_cell_at(&title, 0, 0)->text;
        add_heading(report, 1, report_format(report, "%stasks", report->prefix), words, words);
        table_free(&title);
    }
    while (next < end)
        TRY(add_section(report, &next, end, error));
    return OK;
}

/* --- The page --- */

/* The facts in the head of the page, and what was asked for and left out. */
static status add_notes(struct report *report, struct text *html, struct error *error)
{
    struct table notes = {0};
    struct query_filter filter = report->request->filter;
    const char *asked = "";
    status result =
        query_rows(report->store, (const char *)report_notes[0].data, &report->request->filter, &notes, error);
    for (size_t row = 0; row < table_rows(&notes); row++)
        if (notes.cell[row].kind == CELL_TEXT)
            html_element(html, row == 0 ? "<p class=\"facts\">" : "<p class=\"note\">", notes.cell[row].text, "</p>\n");
    table_free(&notes);
    for (size_t i = 0; query_filter_name(i) != NULL; i++)
        if (*query_filter_text(&filter, i) != NULL)
            asked = report_format(report, "%s%s%s %s", asked, *asked != 0 ? ", " : "Only ", query_filter_name(i),
                                  *query_filter_text(&filter, i));
    if (*asked != 0)
        html_element(html, "<p class=\"note\">", asked, ".</p>\n");
    return result;
}

static const char *file_of(enum file file)
{
    return (const char *)report_files[file].data;
}

/* Only the script with the nonce runs, and nothing is loaded: whatever a database says stays text. A name cannot hold the digest of
 * the page that it is in. */
static void fill(struct text *html, struct report *report, const struct text *notes)
{
    char nonce[DIGEST_SIZE];
    const char *path = store_path(report->store), *slash = strrchr(path, '/');
    struct text name = {0};
    digest_bytes(report->body.data, report->body.size, nonce);
    html_escape(&name, slash != NULL ? slash + 1 : path);
    const char *const places[] = {
        "{nonce}", nonce,       "{name}", name.data,        "{style}", file_of(STYLE),    "{script}", file_of(SCRIPT),
        "{notes}", notes->data, "{nav}",  report->nav.data, "{body}",  report->body.data, NULL};
    text_add_replaced(html, file_of(PAGE), places);
    text_free(&name);
}

status page_write(struct report *report, struct text *html, struct error *error)
{
    struct questions questions = {0};
    struct text notes = {0};
    text_add(&report->nav, "%s", "");
    text_add(&report->body, "%s", "");
    status result = add_notes(report, &notes, error);
    NEXT(result, questions_open_page(&questions, report->request->questions, error));
    for (int64_t i = 1; i <= report->boards && result == OK; i++)
        result = add_board(report, i, &questions, error);
    questions_close(&questions);
    if (result == OK)
        fill(html, report, &notes);
    text_free(&notes);
    return result;
}
