#include "results/report/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "results/query/internal.h"
#include "results/report/figure.h"
#include "results/report/html.h"

#define NOTE "<p class=\"note\">", "</p>\n"

/* --- What the head says --- */

/* The line with the row's values in place of {column}. */
static const char *fill(const struct part *part, const char *line, size_t row)
{
    const char *filled = "", *open, *close;
    for (; line != NULL && (open = strchr(line, '{')) != NULL && (close = strchr(open, '}')) != NULL;
         line = close + 1) {
        const char *column = report_format(part->report, "%.*s", (int)(close - open) - 1, open + 1);
        filled =
            report_format(part->report, "%s%.*s%s", filled, (int)(open - line), line, part_text(part, row, column));
    }
    return line != NULL ? report_format(part->report, "%s%s", filled, line) : NULL;
}

static const char *name_of(const struct part *part, size_t row)
{
    const char *name = fill(part, part->question->shown[ON_NAME], row);
    return report_format(part->report, "%s%s", part->report->prefix, name != NULL ? name : part->question->name);
}

/* A name in braces that is no column would stay on the page. */
static status check_names(const struct part *part, const char *line, struct error *error)
{
    const struct table *rows = part->rows;
    OWNED const char **names = xcalloc(rows->columns, sizeof *names);
    for (size_t column = 0; column < rows->columns; column++)
        names[column] = rows->column[column].title;
    for (const char *at = line; at != NULL && (at = strchr(at, '{')) != NULL; at++) {
        const char *name = report_format(part->report, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        if (query_column(rows, name) == SIZE_MAX)
            return error_unknown_word(error, line, "column", name, names, rows->columns);
    }
    return OK;
}

static status check_head(const struct part *part, struct error *error)
{
    TRY(check_names(part, part->question->title, error));
    for (size_t key = 0; key < QUESTION_KEYS; key++)
        TRY(check_names(part, part->question->shown[key], error));
    return OK;
}

/* Reads the words of "draw", "line 1 points", as "line|points". */
static status read_words(struct part *part, struct error *error)
{
    static const char known[] =
        "table|list|line|heat|interval|bars|cells|zero|points|fractions|noisy|own_ranges|printed|wrapped|links|anchors";
    const char *line = part->says[ON_DRAW] != NULL ? part->says[ON_DRAW] : "";
    part->words = "";
    part->decimals = DECIMALS_ALL;
    for (size_t length; *line != 0; line += length + strspn(line + length, " ")) {
        length = strcspn(line, " ");
        const char *word = report_format(part->report, "%.*s", (int)length, line);
        if (*word >= '0' && *word <= '9')
            part->decimals = *word - '0';
        else if (!text_has_word(known, word))
            return error_set(error, ERROR_ARGUMENT, "draw: expected words of %s, found \"%s\"", known, word);
        else
            part->words = report_format(part->report, "%s|%s", part->words, word);
    }
    return OK;
}

static status read_head(struct part *part, struct error *error)
{
    for (size_t key = 0; key < QUESTION_KEYS; key++)
        part->says[key] = fill(part, part->question->shown[key], part->first);
    part->title = fill(part, part->question->title, part->first);
    part->name = name_of(part, part->first);
    double ends[] = {(double)NAN, (double)NAN};
    const char *range = part->says[ON_RANGE];
    for (size_t i = 0; range != NULL && i < 2; i++) {
        char *end;
        double number = strtod(range, &end);
        ends[i] = end > range ? number : (double)NAN;
        range = end;
    }
    part->low = ends[0];
    part->high = ends[1];
    return read_words(part, error);
}

/* --- Tables and lists --- */

/* A column has the decimals of the line "draw" where no line is for it. */
static void set_columns(const struct part *part, struct table *table)
{
    for (size_t i = 0; i < table->columns; i++) {
        struct table_column *column = &table->column[i];
        column->decimals = column->decimals == DECIMALS_ALL ? part->decimals : column->decimals;
    }
}

static status write_table(const struct part *part, bool with_files, struct error *error)
{
    SCOPED(table_free) struct table table = {0};
    TRY(query_show(part->question, part->rows, part->first, part->end, NULL, &table, error));
    set_columns(part, &table);
    html_table(&part->report->body, part, &table, with_files);
    return OK;
}

/* The texts of the first column. */
static void write_texts(const struct part *part, const char *before, const char *behind)
{
    for (size_t row = part->first; row < part->end; row++) {
        const char *text = part_text(part, row, part->rows->column[0].title);
        if (*text != 0)
            html_element(&part->report->body, before, text, behind);
    }
}

/* Each row of the statement is a paragraph; *count: how many there are. */
static status write_notes(struct report *report, const char *sql, size_t *count, struct error *error)
{
    SCOPED(table_free) struct table notes = {0};
    *count = 0;
    if (sql == NULL)
        return OK;
    TRY(query_rows(report->store, sql, &report->request->filter, &notes, error));
    *count = table_rows(&notes);
    write_texts(&(struct part){.report = report, .rows = &notes, .end = *count}, NOTE);
    return OK;
}

/* --- Drawings --- */

static status draw(const struct part *part, struct error *error)
{
    struct text *page = &part->report->body;
    bool files = part->report->request->figures, table = text_has_word(part->words, "table");
    SCOPED(figure_free) struct figure figure = {0};
    if (text_has_word(part->words, "list")) {
        text_add(page, "<ul class=\"words\">\n");
        write_texts(part, "<li>", "</li>\n");
        text_add(page, "</ul>\n");
        return OK;
    }
    TRY(report_stopped(part->report, error));
    if (!table)
        TRY(figure_read(&figure, part, error));
    files &= figure.panels > 0;
    if (table || figure.in_table)
        TRY(write_table(part, files, error));
    else if (figure.panels > 0)
        figure_show(page, &figure, files);
    return files ? figure_write(&figure, error) : OK;
}

/* Whether a row continues the drawing. */
static bool continues(const struct part *part, size_t row)
{
    size_t choice = query_column(part->rows, "choice"), taken = part->report->taken;
    if (choice != SIZE_MAX &&
        !query_same_cell(table_cell_at(part->rows, row, choice), table_cell_at(part->rows, part->first, choice)))
        return false;
    bool same = part->question->shown[ON_NAME] == NULL || strcmp(name_of(part, row), part->name) == 0;
    report_release(part->report, taken);
    return same;
}

/* A drawing per choice and name. */
static status draw_all(struct part *part, struct error *error)
{
    struct text *page = &part->report->body;
    const char *last = NULL, *chooser = part->question->shown[ON_CHOICE],
               *details = fill(part, part->question->shown[ON_DETAILS], 0);
    size_t count = table_rows(part->rows);
    bool folded = details != NULL && *details != 0;
    if (folded)
        html_element(page, "<details><summary>", details, "</summary>\n");
    if (chooser != NULL)
        html_element(page, "<div class=\"choices\" data-name=\"", chooser, "\">\n");
    for (; part->first < count; part->first = part->end) {
        TRY(read_head(part, error));
        for (part->end = part->first + 1; part->end < count && continues(part, part->end);)
            part->end++;
        const char *choice = part_text(part, part->first, "choice");
        if (chooser != NULL && (last == NULL || strcmp(choice, last) != 0)) {
            text_add(page, last != NULL ? "</div>\n" : "");
            html_element(page, "<div class=\"choice\"><h4>", choice, "</h4>\n");
            last = choice;
        }
        TRY(draw(part, error));
    }
    text_add(page, "%s%s%s", last != NULL ? "</div>\n" : "", chooser != NULL ? "</div>\n" : "",
             folded ? "</details>\n" : "");
    return OK;
}

status section_write(struct report *report, const struct question *question, struct error *error)
{
    SCOPED(table_free) struct table rows = {0};
    struct part part = {.report = report, .question = question, .rows = &rows};
    size_t notes, taken = report->taken;
    if (report->comparison.store == NULL && strstr(question->answer, "compared_groups") != NULL)
        return OK;
    status result = write_notes(report, question->refuse, &notes, error);
    if (result == OK && notes == 0)
        result = query_rows(report->store, question->answer, &report->request->filter, &rows, error);
    if (table_rows(&rows) > 0) {
        NEXT(result, check_head(&part, error));
        NEXT(result, write_notes(report, question->note, &notes, error));
        NEXT(result, draw_all(&part, error));
    }
    report_release(report, taken);
    return result == OK ? OK : error_context(error, "question %s", question->name);
}
