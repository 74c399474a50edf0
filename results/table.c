#include "results/table.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "core/alloc.h"
#include "core/text.h"

void table_add_column(struct table *table, const struct table_column *column)
{
    assert(table->count == 0);
    GROW(table->column, table->columns);
    table->column[table->columns] = *column;
    table->column[table->columns++].title = xstrdup(column->title);
}

static void add_cell(struct table *table, struct table_cell cell)
{
    GROW(table->cell, table->count);
    cell.begins = table->begins || table->count == 0;
    table->begins = false;
    table->cell[table->count++] = cell;
}

void table_add_empty(struct table *table)
{
    add_cell(table, (struct table_cell){.kind = CELL_EMPTY});
}

void table_add_integer(struct table *table, int64_t value)
{
    add_cell(table, (struct table_cell){.kind = CELL_INTEGER, .integer = value});
}

void table_add_real(struct table *table, double value)
{
    add_cell(table, (struct table_cell){.kind = isfinite(value) ? CELL_REAL : CELL_EMPTY, .real = value});
}

void table_add_text(struct table *table, const char *value)
{
    if (value)
        table_add_text_bytes(table, value, strlen(value));
    else
        table_add_empty(table);
}

void table_add_text_bytes(struct table *table, const char *value, size_t size)
{
    add_cell(table, (struct table_cell){.kind = CELL_TEXT, .text = xstrndup(value, size)});
}

void table_add_cell(struct table *table, const struct table_cell *cell)
{
    struct table_cell copy = *cell;
    if (cell->kind == CELL_TEXT)
        copy.text = xstrdup(cell->text);
    add_cell(table, copy);
}

void table_begin_block(struct table *table)
{
    assert(table->count % table->columns == 0);
    table->begins = table->count > 0;
    table->blocks += table->begins;
}

size_t table_rows(const struct table *table)
{
    return table->columns ? table->count / table->columns : 0;
}

const struct table_cell *table_cell_at(const struct table *table, size_t row, size_t column)
{
    return &table->cell[row * table->columns + column];
}

double table_cell_real(const struct table_cell *cell)
{
    return cell->kind == CELL_REAL ? cell->real : cell->kind == CELL_INTEGER ? (double)cell->integer : (double)NAN;
}

bool table_column_is_numeric(const struct table *table, size_t column)
{
    bool number = false;
    for (size_t row = 0; row < table_rows(table); row++) {
        enum cell_kind kind = table_cell_at(table, row, column)->kind;
        if (kind == CELL_TEXT)
            return false;
        number |= kind != CELL_EMPTY;
    }
    return number;
}

void table_clear(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->cell[i].kind == CELL_TEXT)
            free(table->cell[i].text);
    table->count = table->blocks = 0;
}

void table_free(struct table *table)
{
    table_clear(table);
    for (size_t i = 0; i < table->columns; i++)
        free((char *)table->column[i].title);
    free(table->column);
    free(table->cell);
    *table = (struct table){0};
}

/* --- The forms of a table: how each writes a cell, and what stands around --- */

enum { WIDTH_LIMIT = 72 /* characters of a cell */ };
#define DECIMALS_EXACT (-2) /* all digits that tell a number from others */

/* --- Numbers --- */

void table_number(double value, int decimals, char number[TABLE_NUMBER])
{
    if (decimals == DECIMALS_ALL)
        snprintf(number, TABLE_NUMBER, "%.6g", value);
    else
        snprintf(number, TABLE_NUMBER, "%.*f", decimals, value);
    if (number[0] == '-' && strtod(number, NULL) == 0) /* no "-0.0" */
        memmove(number, number + 1, strlen(number));
}

const char *table_cell_text(const struct table_cell *cell, int decimals, char number[TABLE_NUMBER])
{
    number[0] = 0;
    if (cell->kind == CELL_INTEGER) {
        snprintf(number, TABLE_NUMBER, "%" PRId64, cell->integer);
    } else if (cell->kind == CELL_REAL && decimals == DECIMALS_EXACT) {
        struct text digits = {0};
        text_add_real(&digits, cell->real);
        snprintf(number, TABLE_NUMBER, "%s", digits.data);
        text_free(&digits);
    } else if (cell->kind == CELL_REAL) {
        table_number(cell->real, decimals, number);
    }
    return cell->kind == CELL_TEXT ? cell->text : number;
}

void table_find_best(const struct table *table, size_t first, size_t end, size_t column, char best[TABLE_NUMBER])
{
    const struct table_column *about = &table->column[column];
    const struct table_cell *found = NULL;
    for (size_t row = first; about->best != BEST_NONE && end - first > 1 && row < end; row++) {
        const struct table_cell *cell = table_cell_at(table, row, column);
        double ahead = found != NULL ? table_cell_real(cell) - table_cell_real(found) : 0;
        bool is_number = !isnan(table_cell_real(cell));
        if (is_number && (found == NULL || (about->best == BEST_HIGHEST ? ahead > 0 : ahead < 0)))
            found = cell;
    }
    best[0] = 0;
    if (found != NULL)
        table_cell_text(found, about->decimals, best);
}

/* --- Layout, of the forms for people --- */

struct column {
    size_t width, limit;
    bool right;
    char best[TABLE_NUMBER]; /* of the block that is being written */
};

/* A cell of the head or of a row on its way into a form. */
struct shown {
    const struct column *column;
    const char *reads;                     /* what a terminal shows of it */
    bool head, number, best, colour, last; /* last: of its row */
};

/* Returns the columns that a visible text takes, at most limit; *bytes: how much of it fits, with an ellipsis behind it
 * unless it is all. */
static size_t fit(const char *visible, size_t limit, size_t *bytes)
{
    size_t width = 0, at = 0;
    *bytes = 0; /* up to here there is room for the ellipsis */
    while (visible[at] != 0 && width <= limit) {
        utf8proc_int32_t code;
        at += (size_t)utf8proc_iterate((const utf8proc_uint8_t *)visible + at, -1, &code);
        width += (size_t)utf8proc_charwidth(code);
        if (width < limit)
            *bytes = at;
    }
    if (width > limit)
        return limit;
    *bytes = at;
    return width;
}

static void widen(struct column *column, const char *string)
{
    struct text visible = {0};
    size_t bytes;
    text_add_visible(&visible, string);
    size_t width = fit(visible.data, column->limit, &bytes);
    column->width = width > column->width ? width : column->width;
    text_free(&visible);
}

static bool begins_block(const struct table *table, size_t row)
{
    return table_cell_at(table, row, 0)->begins;
}

static void enter_block(const struct table *table, struct column *columns, size_t row)
{
    size_t end = row + 1;
    while (end < table_rows(table) && !begins_block(table, end))
        end++;
    for (size_t i = 0; i < table->columns; i++)
        table_find_best(table, row, end, i, columns[i].best);
}

/* The text of a cell in the forms for people. */
static const char *shown_text(const struct table *table, size_t row, size_t column, char number[TABLE_NUMBER])
{
    const struct table_column *about = &table->column[column];
    if (about->once && !begins_block(table, row))
        return "";
    return table_cell_text(table_cell_at(table, row, column), about->decimals, number);
}

static struct column *lay_out(const struct table *table)
{
    struct column *columns = xcalloc(table->columns, sizeof *columns);
    char number[TABLE_NUMBER];
    for (size_t i = 0; i < table->columns; i++) {
        enum table_align align = table->column[i].align;
        columns[i].right = align == ALIGN_AUTO ? table_column_is_numeric(table, i) : align == ALIGN_RIGHT;
        columns[i].limit = table->cell_width > 0 ? table->cell_width : WIDTH_LIMIT;
        widen(&columns[i], table->column[i].title);
        for (size_t row = 0; row < table_rows(table); row++)
            widen(&columns[i], shown_text(table, row, i, number));
    }
    return columns;
}

/* --- Aligned text --- */

static void add_padded(struct text *text, const struct shown *cell)
{
    const struct column *column = cell->column;
    const char *style = !cell->colour ? "" : cell->head ? "\033[1m" : cell->best ? "\033[1;32m" : "";
    size_t bytes;
    int padding = (int)(column->width - fit(cell->reads, column->limit, &bytes));
    text_add(text, "%*s%s%.*s%s%s", column->right ? padding : 0, "", style, (int)bytes, cell->reads,
             cell->reads[bytes] != 0 ? "…" : "", style[0] ? "\033[0m" : "");
    text_add(text, "%*s%s", column->right || cell->last ? 0 : padding, "", cell->last ? "\n" : "  ");
}

static void add_rule(const struct table *table, const struct column *columns, struct text *text)
{
    for (size_t i = 0; i < table->columns; i++) {
        for (size_t k = 0; k < columns[i].width; k++)
            text_add(text, "─");
        text_add(text, i + 1 == table->columns ? "\n" : "  ");
    }
}

/* --- CSV and JSON --- */

/* RFC 4180, without line breaks in a field. A spreadsheet takes a field that begins like a formula for one and runs it, unless
 * it is a number: an apostrophe before it, as OWASP advises. */
static void add_csv(struct text *text, const struct shown *cell)
{
    static const char *const doubled[] = {"\"", "\"\"", NULL};
    const char *quote = strpbrk(cell->reads, ",\"") != NULL ? "\"" : "";
    double number;
    bool formula = *cell->reads != 0 && strchr("=+-@", *cell->reads) != NULL && !parse_real(cell->reads, &number);
    text_add(text, "%s%s", quote, formula ? "'" : "");
    text_add_replaced(text, cell->reads, doubled);
    text_add(text, "%s%s", quote, cell->last ? "\r\n" : ",");
}

/* The exact text, but U+FFFD for a byte that is not UTF-8. Characters that a terminal would obey are escaped; JSON
 * requires that only below U+0020. */
static void add_json_string(struct text *text, const char *string)
{
    static const char *const deleted[] = {"\x7f", "\\u007F", NULL};
    struct text valid = {0};
    const char *at = string;
    for (const char *invalid; (invalid = text_find_invalid(at)) != NULL; at = invalid + 1)
        text_add(&valid, "%.*s\xef\xbf\xbd", (int)(invalid - at), at);
    text_add(&valid, "%s", at);
    json_t *value = json_string(valid.data);
    char *encoded = json_dumps(value, JSON_ENCODE_ANY | (text_is_visible(string) ? 0 : JSON_ENSURE_ASCII));
    text_add_replaced(text, encoded, deleted);
    free(encoded);
    json_decref(value);
    text_free(&valid);
}

/* An array with an object per row, a row per line. */
static void render_json(const struct table *table, struct text *text)
{
    char number[TABLE_NUMBER];
    for (size_t i = 0; i < table->count; i++) {
        const struct table_cell *cell = &table->cell[i];
        size_t column = i % table->columns;
        text_add(text, column > 0 ? ", " : i > 0 ? "},\n  {" : "[\n  {");
        add_json_string(text, table->column[column].title);
        text_add(text, ": ");
        if (cell->kind == CELL_TEXT)
            add_json_string(text, cell->text);
        else
            text_add(text, "%s", cell->kind == CELL_EMPTY ? "null" : table_cell_text(cell, DECIMALS_EXACT, number));
    }
    text_add(text, table->count > 0 ? "}\n]\n" : "[]\n");
}

/* --- Markdown and LaTeX --- */

static void add_markdown(struct text *text, const struct shown *cell)
{
    static const char *const marks[] = {"<", "&lt;", "&", "&amp;", "|", "\\|", "\\", "\\\\",
                                        "`", "\\`",  "*", "\\*",   "_", "\\_", NULL};
    const char *style = cell->best ? "**" : "";
    text_add(text, "| %s", style);
    text_add_replaced(text, cell->reads, marks);
    text_add(text, "%s %s", style, cell->last ? "|\n" : "");
}

static void add_alignments(const struct table *table, const struct column *columns, struct text *text)
{
    for (size_t i = 0; i < table->columns; i++)
        text_add(text, "| %s %s", columns[i].right ? "---:" : "---", i + 1 == table->columns ? "|\n" : "");
}

/* Letters beyond ASCII that pdfLaTeX does not know by itself, characters that it obeys, and glyphs that its old font encoding
 * has elsewhere. */
static const char *const latex_marks[] = {"−",  "$-$",
                                          "×",  "$\\times$",
                                          "±",  "$\\pm$",
                                          "·",  "$\\cdot$",
                                          "→",  "$\\to$",
                                          "≤",  "$\\le$",
                                          "≥",  "$\\ge$",
                                          "…",  "\\dots{}",
                                          "<",  "$<$",
                                          ">",  "$>$",
                                          "|",  "$|$",
                                          "&",  "\\&",
                                          "%",  "\\%",
                                          "$",  "\\$",
                                          "#",  "\\#",
                                          "_",  "\\_",
                                          "{",  "\\{",
                                          "}",  "\\}",
                                          "\\", "\\textbackslash{}",
                                          "~",  "\\textasciitilde{}",
                                          "^",  "\\textasciicircum{}",
                                          NULL};

static void add_latex(struct text *text, const struct shown *cell)
{
    bool negative = cell->number && *cell->reads == '-',
         argument = *cell->reads == '[' || *cell->reads == '*'; /* after a row's end one begins so */
    text_add(text, "%s%s", cell->best ? "\\textbf{" : "", negative ? "$-$" : argument ? "{}" : "");
    text_add_replaced(text, cell->reads + negative, latex_marks);
    text_add(text, "%s%s", cell->best ? "}" : "", cell->last ? " \\\\\n" : " & ");
}

/* For a document that loads booktabs. */
static void begin_latex(const struct table *table, const struct column *columns, struct text *text)
{
    text_add(text, "\\begin{tabular}{");
    for (size_t i = 0; i < table->columns; i++)
        text_add(text, columns[i].right ? "r" : "l");
    text_add(text, "}\n\\toprule\n");
}

static void add_midrule(const struct table *table, const struct column *columns, struct text *text)
{
    (void)table, (void)columns;
    text_add(text, "\\midrule\n");
}

/* --- Forms --- */

typedef void add_line(const struct table *table, const struct column *columns, struct text *text);

static void add_nothing(const struct table *table, const struct column *columns, struct text *text)
{
    (void)table, (void)columns, (void)text;
}

/* Without add_cell: JSON. */
static const struct form {
    void (*add_cell)(struct text *text, const struct shown *cell);
    add_line *begin, *below_head, *above_block;
    const char *end;
    bool exact;
} forms[] = {
    [TABLE_TEXT] = {add_padded, add_nothing, add_rule, add_rule, "", false},
    [TABLE_CSV] = {add_csv, add_nothing, add_nothing, add_nothing, "", true},
    [TABLE_JSON] = {0},
    [TABLE_MARKDOWN] = {add_markdown, add_nothing, add_alignments, add_nothing, "", false},
    [TABLE_LATEX] = {add_latex, begin_latex, add_midrule, add_midrule, "\\bottomrule\n\\end{tabular}\n", false},
};

static void add_shown(const struct form *form, const char *reads, struct shown cell, struct text *text)
{
    struct text visible = {0};
    text_add_visible(&visible, reads);
    cell.reads = visible.data;
    form->add_cell(text, &cell);
    text_free(&visible);
}

static void render(const struct form *form, const struct table *table, struct column *columns, bool colour,
                   struct text *text)
{
    char number[TABLE_NUMBER];
    form->begin(table, columns, text);
    for (size_t i = 0; i < table->columns; i++)
        add_shown(form, table->column[i].title,
                  (struct shown){&columns[i], .head = true, .colour = colour, .last = i + 1 == table->columns}, text);
    form->below_head(table, columns, text);
    for (size_t i = 0; i < table->count; i++) {
        size_t row = i / table->columns, column = i % table->columns;
        const struct table_cell *cell = &table->cell[i];
        bool is_number = cell->kind == CELL_INTEGER || cell->kind == CELL_REAL;
        if (column == 0 && begins_block(table, row)) {
            enter_block(table, columns, row);
            if (row > 0)
                form->above_block(table, columns, text);
        }
        const char *reads =
            form->exact ? table_cell_text(cell, DECIMALS_EXACT, number) : shown_text(table, row, column, number);
        add_shown(form, reads,
                  (struct shown){&columns[column], .number = is_number, .colour = colour,
                                 .best = is_number && *reads != 0 &&
                                         (cell->marked || strcmp(columns[column].best, reads) == 0),
                                 .last = column + 1 == table->columns},
                  text);
    }
    text_add(text, "%s", form->end);
}

void table_render(const struct table *table, enum table_format format, bool colour, struct text *text)
{
    struct column *columns = lay_out(table);
    if (forms[format].add_cell != NULL)
        render(&forms[format], table, columns, colour, text);
    else
        render_json(table, text);
    free(columns);
}
