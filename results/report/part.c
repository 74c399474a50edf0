#include "results/report/part.h"

#include <math.h>
#include <string.h>

#include "results/query/internal.h"

/* --- Tables --- */

/* The rows with the columns of the table; value: the column that stands where the head's wide value does. */
static status lay_out(const struct part *part, const char *value, struct table *shown, struct error *error)
{
    const struct table *rows = part->rows;
    const struct question *question = part->question;
    struct table kept = {0};
    size_t from = query_column(rows, value);
    bool *keep = report_take(part->call->report, rows->columns, sizeof *keep);
    TRY(report_check(part->call->report, error));
    for (size_t column = 0; column < rows->columns; column++) {
        const char *title = rows->column[column].title;
        keep[column] = part_is_column(part, title);
        if (keep[column])
            table_add_column(&kept, &rows->column[column]);
    }
    for (size_t row = part->first; row < part->end; row++)
        for (size_t column = 0; column < rows->columns; column++) {
            bool wide = question->wide_value != NULL && strcmp(rows->column[column].title, question->wide_value) == 0;
            if (keep[column])
                query_copy_cell(&kept, table_cell_at(rows, row, wide ? from : column));
        }
    status result = query_show(question, &kept, NULL, shown, error);
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
    bool *cells = report_take(part->call->report, frames.count + 1, sizeof *cells);
    for (size_t i = 0; result == OK && cells != NULL && i < frames.count; i++)
        cells[i] = frames.cell[i].kind == CELL_INTEGER && frames.cell[i].integer != 0 && i % frames.columns > 0;
    table_free(&frames);
    *framed = cells;
    return result;
}

static bool has_figure(const struct part *part)
{
    for (size_t row = part->first; row < part->end; row++)
        if (!(part_real(part, row, "extra") > 0))
            return true;
    return false;
}

static const char *caption_of(const struct part *part)
{
    const char *caption = part_says(part, ON_CAPTION), *framed = part_says(part, ON_FRAMED);
    return framed != NULL ? report_format(part->call->report, "%s Framed: %s.", caption, framed) : caption;
}

static status write_table(const struct part *part, bool with_files, struct error *error)
{
    struct table table = {0};
    const bool *framed;
    const char *best = part_says(part, ON_BEST);
    struct figure_range range = part_range(part);
    TRY(read_frames(part, &framed, error));
    status result = lay_out(part, part->question->wide_value, &table, error);
    for (size_t column = 1; result == OK && best != NULL && column < table.columns; column++)
        table.column[column].best = strcmp(best, "lowest") == 0 ? BEST_LOWEST : BEST_HIGHEST;
    if (result == OK)
        html_table(part->call->page,
                   &(struct html_table){.table = &table,
                                        .name = part_name(part),
                                        .caption = caption_of(part),
                                        .heat = !isnan(range.low) && !isnan(range.high),
                                        .low = range.low,
                                        .high = range.high,
                                        .wrapped = part_has_word(part, "wrapped"),
                                        .heads = 1,
                                        .framed = framed,
                                        .files = with_files ? section_files(part->call, part_name(part)) : NULL});
    table_free(&table);
    return result;
}

/* --- Drawings --- */

static status draw(const struct part *part, struct error *error)
{
    bool heat = part_has_word(part, "heat") && query_column(part->rows, "panel") == SIZE_MAX;
    bool figure = heat ? has_figure(part) : !part_has_word(part, "table");
    if (part_has_word(part, "comparison"))
        return section_comparison(part->call, error);
    if (heat || !figure)
        TRY(write_table(part, figure, error));
    return figure ? part_figure(part, error) : OK;
}

/* Whether a row continues the drawing of the row before it. */
static bool continues(const struct part *part, size_t row)
{
    struct report *report = part->call->report;
    struct part a = *part, b = *part;
    size_t choice = query_column(part->rows, "choice");
    if (choice != SIZE_MAX &&
        !query_same_cell(table_cell_at(part->rows, row, choice), table_cell_at(part->rows, row - 1, choice)))
        return false;
    struct arena_mark mark = arena_mark(&report->arena);
    a.first = row - 1;
    b.first = row;
    bool same = part->question->shown[ON_NAME] == NULL || strcmp(part_name(&a), part_name(&b)) == 0;
    arena_release(&report->arena, mark);
    return same;
}

static status draw_all(struct part *part, struct error *error)
{
    struct text *page = part->call->page;
    const char *chooser = part_says(part, ON_CHOICE), *details = part_says(part, ON_DETAILS), *last = NULL;
    size_t count = table_rows(part->rows);
    if (details != NULL) {
        text_add(page, "<details><summary>");
        html_escape(page, details);
        text_add(page, "</summary>\n");
    }
    if (chooser != NULL)
        section_choices(part->call, chooser);
    for (part->first = 0; part->first < count; part->first = part->end) {
        for (part->end = part->first + 1; part->end < count && continues(part, part->end);)
            part->end++;
        const char *choice = chooser != NULL ? part_text(part, part->first, "choice") : NULL;
        if (choice != NULL && (last == NULL || strcmp(choice, last) != 0)) {
            text_add(page, last != NULL ? "</div>\n" : "");
            section_choice(part->call, choice);
            last = choice;
        }
        TRY(draw(part, error));
        TRY(report_check(part->call->report, error));
    }
    text_add(page, last != NULL ? "</div>\n" : "");
    text_add(page, chooser != NULL ? "</div>\n" : "");
    text_add(page, details != NULL ? "</details>\n" : "");
    return OK;
}

/* Each row of the statement is a paragraph. */
static status add_notes(const struct section_call *call, const char *sql, size_t *count, struct error *error)
{
    struct table notes = {0};
    *count = 0;
    if (sql == NULL)
        return OK;
    status result = query_rows(call->report->store, sql, &call->report->request->filter, &notes, error);
    for (size_t row = 0; result == OK && row < table_rows(&notes); row++)
        if (table_cell_at(&notes, row, 0)->kind == CELL_TEXT) {
            html_paragraph(call->page, "note", table_cell_at(&notes, row, 0)->text);
            (*count)++;
        }
    table_free(&notes);
    return result;
}

status part_write(const struct section_call *call, const struct question *question, struct error *error)
{
    struct table rows = {0};
    struct part part = {.call = call, .question = question, .rows = &rows};
    size_t notes;
    status result = add_notes(call, question->refuse, &notes, error);
    if (result != OK || notes > 0)
        return result == OK ? OK : error_context(error, "question %s", question->name);
    result = query_rows(call->report->store, question->answer, &call->report->request->filter, &rows, error);
    if (result == OK && table_rows(&rows) > 0) {
        result = add_notes(call, question->note, &notes, error);
        NEXT(result, draw_all(&part, error));
    }
    table_free(&rows);
    return result == OK ? report_check(call->report, error) : error_context(error, "question %s", question->name);
}
