#include "results/report/part.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/query/internal.h"
#include "results/report/html.h"

#define NOTE "<p class=\"note\">", "</p>\n"

/* --- Tables --- */

static bool is_empty(const struct part *part, size_t column)
{
    for (size_t row = part->first; row < part->end; row++)
        if (table_cell_at(part->rows, row, column)->kind != CELL_EMPTY)
            return false;
    return true;
}

static bool is_kept(const struct part *part, size_t column)
{
    const char *title = part->rows->column[column].title;
    for (size_t i = 0; i < part->question->columns; i++)
        if (strcmp(part->question->column[i].name, title) == 0 && part->question->column[i].optional)
            return !is_empty(part, column);
    return part_is_column(part, title);
}

/* The rows with the columns of the table; value: the column that stands where the head's wide value does. */
static status lay_out(const struct part *part, const char *value, struct table *shown, struct error *error)
{
    const struct table *rows = part->rows;
    struct table kept = {0};
    size_t *from = report_take(part->call->report, rows->columns, sizeof *from);
    for (size_t column = 0; column < rows->columns; column++)
        if (is_kept(part, column)) {
            bool wide = query_column(rows, part->question->wide_value) == column;
            from[kept.columns] = wide ? query_column(rows, value) : column;
            table_add_column(&kept, &rows->column[column]);
        }
    for (size_t row = part->first; row < part->end; row++)
        for (size_t column = 0; column < kept.columns; column++)
            query_copy_cell(&kept, table_cell_at(rows, row, from[column]));
    status result = query_show(part->question, &kept, NULL, shown, error);
    table_free(&kept);
    return result;
}

/* Cells that have a frame, [rows, columns] of the table; NULL: none. */
static status read_frames(const struct part *part, const bool **framed, struct error *error)
{
    struct table frames = {0};
    *framed = NULL;
    if (query_column(part->rows, "framed") == SIZE_MAX)
        return OK;
    status result = lay_out(part, "framed", &frames, error);
    bool *cells = report_take(part->call->report, frames.count, sizeof *cells);
    for (size_t i = 0; result == OK && i < frames.count; i++)
        cells[i] = frames.cell[i].kind == CELL_INTEGER && frames.cell[i].integer != 0 && i % frames.columns > 0;
    table_free(&frames);
    *framed = cells;
    return result;
}

/* A column has the decimals of the line "draw" where no line is for it, and what stands out of the line "best". */
static void set_columns(const struct part *part, struct table *table)
{
    const char *number = strpbrk(part_says(part, ON_DRAW), "0123456789"), *best = part_says(part, ON_BEST);
    bool *has_text = report_take(part->call->report, table->columns, sizeof *has_text);
    for (size_t i = 0; i < table->count; i++)
        has_text[i % table->columns] |= table->cell[i].kind == CELL_TEXT;
    for (size_t i = 0; i < table->columns; i++) {
        struct table_column *column = &table->column[i];
        if (number != NULL && column->decimals == DECIMALS_ALL && !has_text[i])
            column->decimals = (int)strtol(number, NULL, 10);
        if (best != NULL && i > 0)
            column->best = strcmp(best, "lowest") == 0 ? BEST_LOWEST : BEST_HIGHEST;
    }
}

static const char *caption_of(const struct part *part)
{
    const char *caption = part_says(part, ON_CAPTION), *framed = part_says(part, ON_FRAMED);
    return framed != NULL ? report_format(part->call->report, "%s Framed: %s.", caption, framed) : caption;
}

static status write_table(const struct part *part, bool with_files, struct error *error)
{
    struct table table = {0};
    struct figure_range range = part_range(part);
    struct html_table shown = {.table = &table,
                               .name = part_name(part),
                               .caption = caption_of(part),
                               .heat = !isnan(range.low) && !isnan(range.high),
                               .low = range.low,
                               .high = range.high,
                               .wrapped = part_has_word(part, "wrapped"),
                               .with_files = with_files && part->call->report->request->figures};
    TRY(read_frames(part, &shown.framed, error));
    status result = lay_out(part, part->question->wide_value, &table, error);
    set_columns(part, &table);
    if (result == OK)
        html_table(part->call->page, &shown);
    table_free(&table);
    return result;
}

/* --- Drawings --- */

static bool has_figure(const struct part *part)
{
    for (size_t row = part->first; row < part->end; row++)
        if (!(part_real(part, row, "extra") > 0))
            return true;
    return false;
}

/* The texts of the first column; returns how many there are. */
static size_t write_texts(const struct part *part, const char *before, const char *behind)
{
    size_t count = 0;
    for (size_t row = part->first; row < part->end; row++) {
        const char *text = part_text(part, row, part->rows->column[0].title);
        if (*text != 0)
            html_element(part->call->page, before, text, behind);
        count += *text != 0;
    }
    return count;
}

static status draw(const struct part *part, struct error *error)
{
    bool heat = part_has_word(part, "heat") && query_column(part->rows, "panel") == SIZE_MAX;
    bool figure = heat ? has_figure(part) : !part_has_word(part, "table");
    if (part_has_word(part, "notes")) {
        write_texts(part, NOTE);
        return OK;
    }
    if (part_has_word(part, "list")) {
        text_add(part->call->page, "<ul class=\"words\">\n");
        write_texts(part, "<li>", "</li>\n");
        text_add(part->call->page, "</ul>\n");
        return OK;
    }
    if (heat || !figure)
        TRY(write_table(part, figure, error));
    return figure ? part_figure(part, error) : OK;
}

/* Whether a row continues the drawing of the row before it. */
static bool continues(const struct part *part, size_t row)
{
    struct report *report = part->call->report;
    struct part a = *part, b = *part;
    size_t choice = query_column(part->rows, "choice"), taken = report->taken;
    if (choice != SIZE_MAX &&
        !query_same_cell(table_cell_at(part->rows, row, choice), table_cell_at(part->rows, row - 1, choice)))
        return false;
    a.first = row - 1;
    b.first = row;
    bool same = part->question->shown[ON_NAME] == NULL || strcmp(part_name(&a), part_name(&b)) == 0;
    report_release(report, taken);
    return same;
}

static status draw_all(struct part *part, struct error *error)
{
    struct text *page = part->call->page;
    const char *chooser = part_says(part, ON_CHOICE), *details = part_says(part, ON_DETAILS), *last = NULL;
    size_t count = table_rows(part->rows);
    bool folded = details != NULL && *details != 0;
    if (folded)
        html_element(page, "<details><summary>", details, "</summary>\n");
    if (chooser != NULL)
        html_element(page, "<div class=\"choices\" data-name=\"", chooser, "\">\n");
    for (part->first = 0; part->first < count; part->first = part->end) {
        for (part->end = part->first + 1; part->end < count && continues(part, part->end);)
            part->end++;
        const char *choice = chooser != NULL ? part_text(part, part->first, "choice") : NULL;
        if (choice != NULL && (last == NULL || strcmp(choice, last) != 0)) {
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

/* --- The answer --- */

/* Each row of the statement is a paragraph. */
static status write_notes(const struct section_call *call, const char *sql, size_t *count, struct error *error)
{
    struct table notes = {0};
    *count = 0;
    if (sql == NULL)
        return OK;
    status result = report_ask(call->report, sql, &notes, error);
    *count = write_texts(&(struct part){.call = call, .rows = &notes, .end = table_rows(&notes)}, NOTE);
    table_free(&notes);
    return result;
}

/* A name in braces that is no column would stay on the page. */
static status check_names(const struct part *part, const char *line, struct error *error)
{
    const struct table *rows = part->rows;
    const char **names = report_take(part->call->report, rows->columns, sizeof *names);
    for (size_t column = 0; column < rows->columns; column++)
        names[column] = rows->column[column].title;
    for (const char *at = line; at != NULL && (at = strchr(at, '{')) != NULL; at++) {
        const char *name = report_format(part->call->report, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        if (query_column(rows, name) == SIZE_MAX)
            return error_unknown_word(error, line, "column", name, names, rows->columns);
    }
    return OK;
}

static status write(struct part *part, struct error *error)
{
    const struct question *question = part->question;
    size_t notes;
    TRY(check_names(part, question->title, error));
    for (size_t key = 0; key < QUESTION_KEYS; key++)
        TRY(check_names(part, question->shown[key], error));
    TRY(write_notes(part->call, question->note, &notes, error));
    return draw_all(part, error);
}

status part_write(const struct section_call *call, const struct question *question, struct error *error)
{
    struct table rows = {0};
    struct part part = {.call = call, .question = question, .rows = &rows};
    size_t notes, taken = call->report->taken;
    if (call->report->comparison.store == NULL && strstr(question->answer, "compared_groups") != NULL)
        return OK;
    status result = write_notes(call, question->refuse, &notes, error);
    if (result == OK && notes == 0)
        result = report_ask(call->report, question->answer, &rows, error);
    if (result == OK && table_rows(&rows) > 0)
        result = write(&part, error);
    table_free(&rows);
    report_release(call->report, taken);
    return result == OK ? OK : error_context(error, "question %s", question->name);
}
