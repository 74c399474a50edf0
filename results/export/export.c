/* The forms of a table: how each writes a cell, and what stands around. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "core/alloc.h"
#include "core/characters.h"
#include "results/table.h"

#define NUMBER_SIZE 400 /* the longest double with decimals */
#define WIDTH_LIMIT 72  /* characters of a cell */

static void format_rounded(double value, int decimals, char number[NUMBER_SIZE])
{
    if (decimals == DECIMALS_ALL) {
        snprintf(number, NUMBER_SIZE, "%.6g", value);
        return;
    }
    snprintf(number, NUMBER_SIZE, "%.*f", decimals, value);
    if (strtod(number, NULL) == 0 && number[0] == '-') /* no "-0.0" */
        memmove(number, number + 1, strlen(number));
}

/* The cell's own text, or its number written into number. */
static const char *cell_text(const struct table_cell *cell, int decimals, char number[NUMBER_SIZE])
{
    switch (cell->kind) {
    case CELL_TEXT:
        return cell->text;
    case CELL_INTEGER:
        snprintf(number, NUMBER_SIZE, "%" PRId64, cell->integer);
        return number;
    case CELL_REAL:
        format_rounded(cell->real, decimals, number);
        return number;
    case CELL_EMPTY:
        break;
    }
    return "";
}

/* What a terminal shows of the string; the caller frees. */
static char *visible_text(const char *string)
{
    struct text visible = {0};
    text_add_visible(&visible, string);
    return visible.data;
}

/* Cuts a visible text to limit columns and returns its columns. Formats for programs have the full text. */
static size_t clip(char *visible, size_t limit, const char **ellipsis)
{
    size_t width = 0;
    char *fits = visible; /* up to here there is room for the ellipsis */
    *ellipsis = "";
    for (char *at = visible; *at;) {
        utf8proc_int32_t code;
        at += utf8proc_iterate((const utf8proc_uint8_t *)at, -1, &code);
        width += (size_t)utf8proc_charwidth(code);
        if (width < limit)
            fits = at;
        if (width > limit) {
            *fits = '\0';
            *ellipsis = "…";
            return limit;
        }
    }
    return width;
}

static size_t display_width(const char *string, size_t limit)
{
    char *visible = visible_text(string);
    const char *ellipsis;
    size_t width = clip(visible, limit, &ellipsis);
    free(visible);
    return width;
}

static bool aligned_right(const struct table *table, size_t column)
{
    if (table->column[column].align != ALIGN_AUTO)
        return table->column[column].align == ALIGN_RIGHT;
    return table_column_is_numeric(table, column);
}

static double cell_number(const struct table_cell *cell)
{
    return cell->kind == CELL_INTEGER ? (double)cell->integer : cell->real;
}

static bool is_number(const struct table_cell *cell)
{
    return cell->kind == CELL_INTEGER || cell->kind == CELL_REAL;
}

/* The shown text of a column's best cell, "" when there is none; cells with the same text are equally good. */
static void find_best(const struct table *table, size_t first, size_t end, size_t column, char best[NUMBER_SIZE])
{
    const struct table_column *about = &table->column[column];
    const struct table_cell *found = NULL;
    best[0] = '\0';
    if (about->best == BEST_NONE || end - first < 2)
        return;
    for (size_t row = first; row < end; row++) {
        const struct table_cell *cell = table_cell_at(table, row, column);
        if (!is_number(cell))
            continue;
        double ahead = found ? cell_number(cell) - cell_number(found) : 0;
        if (!found || (about->best == BEST_HIGHEST ? ahead > 0 : ahead < 0))
            found = cell;
    }
    char number[NUMBER_SIZE];
    if (found)
        snprintf(best, NUMBER_SIZE, "%s", cell_text(found, about->decimals, number));
}

/* Layout of a column in the forms for people. */
struct layout {
    size_t width, limit;
    bool right;
    char best[NUMBER_SIZE]; /* of the block that enter_row entered last */
};

static int compare_rows(const void *a, const void *b)
{
    return (*(const size_t *)a > *(const size_t *)b) - (*(const size_t *)a < *(const size_t *)b);
}

static bool begins_block(const struct table *table, size_t row)
{
    return row == 0 || (table->blocks > 0 &&
                        bsearch(&row, table->block, table->blocks, sizeof *table->block, compare_rows) != NULL);
}

static size_t block_end(const struct table *table, size_t row)
{
    for (row++; row < table_rows(table) && !begins_block(table, row);)
        row++;
    return row;
}

/* Called before each row is written; returns whether there is a rule above it. */
static bool enter_row(const struct table *table, struct layout *layout, size_t row)
{
    if (!begins_block(table, row))
        return false;
    for (size_t column = 0; column < table->columns; column++)
        find_best(table, row, block_end(table, row), column, layout[column].best);
    return row > 0;
}

/* The text of a cell in the forms for people. */
static const char *shown_text(const struct table *table, size_t row, size_t column, char number[NUMBER_SIZE])
{
    const struct table_column *about = &table->column[column];
    if (about->once && !begins_block(table, row))
        return "";
    return cell_text(table_cell_at(table, row, column), about->decimals, number);
}

static struct layout *lay_out(const struct table *table)
{
    struct layout *layout = xcalloc(table->columns, sizeof *layout);
    for (size_t column = 0; column < table->columns; column++) {
        layout[column].right = aligned_right(table, column);
        layout[column].limit = table->cell_width > 0 ? table->cell_width : WIDTH_LIMIT;
        layout[column].width = display_width(table->column[column].title, layout[column].limit);
        for (size_t row = 0; row < table_rows(table); row++) {
            char number[NUMBER_SIZE];
            size_t width = display_width(shown_text(table, row, column, number), layout[column].limit);
            if (width > layout[column].width)
                layout[column].width = width;
        }
    }
    return layout;
}

/* A cell of the head or of a row on its way into a form. */
struct shown {
    const struct layout *layout;
    char *reads;                           /* what a terminal shows of it */
    bool head, number, best, colour, last; /* last: of its row */
};

static void add_padded(struct text *text, const struct shown *cell)
{
    const struct layout *layout = cell->layout;
    const char *style = !cell->colour ? "" : cell->head ? "\033[1m" : cell->best ? "\033[1;32m" : "", *ellipsis;
    int padding = (int)(layout->width - clip(cell->reads, layout->limit, &ellipsis));
    text_add(text, "%*s%s%s%s%s", layout->right ? padding : 0, "", style, cell->reads, ellipsis,
             style[0] ? "\033[0m" : "");
    text_add(text, "%*s%s", layout->right || cell->last ? 0 : padding, "", cell->last ? "\n" : "  ");
}

static void add_rule(const struct table *table, const struct layout *layout, struct text *text)
{
    for (size_t column = 0; column < table->columns; column++) {
        for (size_t i = 0; i < layout[column].width; i++)
            text_add(text, "─");
        text_add(text, column + 1 == table->columns ? "\n" : "  ");
    }
}

/* A spreadsheet takes a cell that begins like this for a formula and runs it, unless it is a number. */
static bool is_formula(const char *field)
{
    double number;
    return *field != 0 && strchr("=+-@", *field) != NULL && !parse_real(field, &number);
}

/* RFC 4180, without line breaks in a field; an apostrophe before what would be a formula, as OWASP advises. */
static void add_csv_field(struct text *text, const struct shown *cell)
{
    const char *quote = strpbrk(cell->reads, ",\"") != NULL ? "\"" : "";
    text_add(text, "%s%s", quote, is_formula(cell->reads) ? "'" : "");
    for (const char *at = cell->reads; *at; at++)
        text_add(text, *at == '"' ? "\"\"" : "%c", *at);
    text_add(text, "%s%s", quote, cell->last ? "\r\n" : ",");
}

/* Numbers with all of their digits. */
static const char *exact_text(const struct table_cell *cell, char number[NUMBER_SIZE])
{
    if (cell->kind != CELL_REAL)
        return cell_text(cell, 0, number);
    struct text digits = {0};
    text_add_real(&digits, cell->real);
    snprintf(number, NUMBER_SIZE, "%s", digits.data);
    text_free(&digits);
    return number;
}

/* The exact text, but U+FFFD for a byte that is not UTF-8. Characters that a terminal would obey are escaped; JSON
 * requires that only below U+0020. */
static void add_json_string(struct text *text, const char *string)
{
    struct text valid = {0};
    const char *at = string;
    for (const char *invalid; (invalid = text_find_invalid(at)) != NULL; at = invalid + 1)
        text_add(&valid, "%.*s\xef\xbf\xbd", (int)(invalid - at), at);
    text_add(&valid, "%s", at);
    json_t *value = json_string(valid.data);
    char *encoded = json_dumps(value, JSON_ENCODE_ANY | (text_is_visible(string) ? 0 : JSON_ENSURE_ASCII));
    for (at = encoded; *at; at++)
        text_add(text, *at == 0x7f ? "\\u007F" : "%c", *at);
    free(encoded);
    json_decref(value);
    text_free(&valid);
}

static void add_json_cell(struct text *text, const struct table_cell *cell)
{
    char number[NUMBER_SIZE];
    if (cell->kind == CELL_TEXT)
        add_json_string(text, cell->text);
    else
        text_add(text, "%s", cell->kind == CELL_EMPTY ? "null" : exact_text(cell, number));
}

/* An array with an object per row, a row per line. */
static void render_json(const struct table *table, struct text *text)
{
    text_add(text, "[");
    for (size_t row = 0; row < table_rows(table); row++) {
        text_add(text, "%s\n  {", row ? "," : "");
        for (size_t column = 0; column < table->columns; column++) {
            text_add(text, "%s", column ? ", " : "");
            add_json_string(text, table->column[column].title);
            text_add(text, ": ");
            add_json_cell(text, table_cell_at(table, row, column));
        }
        text_add(text, "}");
    }
    text_add(text, table_rows(table) ? "\n]\n" : "]\n");
}

static void add_markdown(struct text *text, const struct shown *cell)
{
    const char *style = cell->best ? "**" : "";
    text_add(text, "| %s", style);
    for (const char *at = cell->reads; *at; at++)
        if (*at == '<' || *at == '&')
            text_add(text, *at == '<' ? "&lt;" : "&amp;");
        else
            text_add(text, strchr("|\\`*_", *at) ? "\\%c" : "%c", *at);
    text_add(text, "%s %s", style, cell->last ? "|\n" : "");
}

static void add_alignments(const struct table *table, const struct layout *layout, struct text *text)
{
    for (size_t column = 0; column < table->columns; column++)
        text_add(text, "| %s %s", layout[column].right ? "---:" : "---", column + 1 == table->columns ? "|\n" : "");
}

/* What LaTeX writes otherwise: letters beyond ASCII that pdfLaTeX does not know by itself, characters that it obeys, and
 * glyphs that its old font encoding has elsewhere. */
static const struct {
    const char *character, *command;
} latex_characters[] = {{"−", "$-$"},
                        {"×", "$\\times$"},
                        {"±", "$\\pm$"},
                        {"·", "$\\cdot$"},
                        {"→", "$\\to$"},
                        {"≤", "$\\le$"},
                        {"≥", "$\\ge$"},
                        {"…", "\\dots{}"},
                        {"<", "$<$"},
                        {">", "$>$"},
                        {"|", "$|$"},
                        {"&", "\\&"},
                        {"%", "\\%"},
                        {"$", "\\$"},
                        {"#", "\\#"},
                        {"_", "\\_"},
                        {"{", "\\{"},
                        {"}", "\\}"},
                        {"\\", "\\textbackslash{}"},
                        {"~", "\\textasciitilde{}"},
                        {"^", "\\textasciicircum{}"}};

/* Returns the bytes that were read. */
static size_t add_latex_character(struct text *text, const char *at)
{
    for (size_t i = 0; i < sizeof latex_characters / sizeof *latex_characters; i++) {
        size_t size = strlen(latex_characters[i].character);
        if (strncmp(at, latex_characters[i].character, size) != 0)
            continue;
        text_add(text, "%s", latex_characters[i].command);
        return size;
    }
    text_add(text, "%c", *at);
    return 1;
}

static void add_latex_cell(struct text *text, const struct shown *cell)
{
    const char *at = cell->reads;
    text_add(text, "%s", cell->best ? "\\textbf{" : "");
    if (cell->number && *at == '-') {
        text_add(text, "$-$");
        at++;
    } else if (*at == '[' || *at == '*') /* after a row's end an argument begins so */
        text_add(text, "{}");
    while (*at)
        at += add_latex_character(text, at);
    text_add(text, "%s%s", cell->best ? "}" : "", cell->last ? " \\\\\n" : " & ");
}

/* For a document that loads booktabs. */
static void begin_latex(const struct table *table, const struct layout *layout, struct text *text)
{
    text_add(text, "\\begin{tabular}{");
    for (size_t column = 0; column < table->columns; column++)
        text_add(text, layout[column].right ? "r" : "l");
    text_add(text, "}\n\\toprule\n");
}

static void add_midrule(const struct table *table, const struct layout *layout, struct text *text)
{
    (void)table, (void)layout;
    text_add(text, "\\midrule\n");
}

typedef void add_line(const struct table *table, const struct layout *layout, struct text *text);

/* In the order of enum table_format; without add_cell: JSON. */
static const struct form {
    const char *name;
    bool exact;
    void (*add_cell)(struct text *text, const struct shown *cell);
    add_line *begin, *below_head, *above_block; /* NULL: nothing */
    const char *end;
} forms[] = {{"table", false, add_padded, NULL, add_rule, add_rule, ""},
             {"csv", true, add_csv_field, NULL, NULL, NULL, ""},
             {"json", true, NULL, NULL, NULL, NULL, ""},
             {"markdown", false, add_markdown, NULL, add_alignments, NULL, ""},
             {"latex", false, add_latex_cell, begin_latex, add_midrule, add_midrule, "\\bottomrule\n\\end{tabular}\n"}};

static void add_cell(const struct form *form, const char *reads, struct shown cell, struct text *text)
{
    cell.reads = visible_text(reads);
    form->add_cell(text, &cell);
    free(cell.reads);
}

static void render(const struct form *form, const struct table *table, struct layout *layout, bool colour,
                   struct text *text)
{
    if (form->begin != NULL)
        form->begin(table, layout, text);
    for (size_t column = 0; column < table->columns; column++)
        add_cell(form, table->column[column].title,
                 (struct shown){&layout[column], .head = true, .colour = colour, .last = column + 1 == table->columns},
                 text);
    if (form->below_head != NULL)
        form->below_head(table, layout, text);
    for (size_t i = 0; i < table_rows(table) * table->columns; i++) {
        size_t row = i / table->columns, column = i % table->columns;
        const struct table_cell *cell = &table->cell[i];
        char number[NUMBER_SIZE];
        if (column == 0 && enter_row(table, layout, row) && form->above_block != NULL)
            form->above_block(table, layout, text);
        const char *reads = form->exact ? exact_text(cell, number) : shown_text(table, row, column, number);
        bool best = is_number(cell) && *reads && (cell->marked || strcmp(layout[column].best, reads) == 0);
        add_cell(form, reads,
                 (struct shown){&layout[column], .number = is_number(cell), .best = best, .colour = colour,
                                .last = column + 1 == table->columns},
                 text);
    }
    text_add(text, "%s", form->end);
}

#define FORMS (sizeof forms / sizeof *forms)

status table_format_parse(const char *name, enum table_format *format, struct error *error)
{
    const char *names[FORMS];
    for (size_t i = 0; i < FORMS; i++) {
        names[i] = forms[i].name;
        if (strcmp(name, names[i]) == 0) {
            *format = (enum table_format)i;
            return OK;
        }
    }
    return error_unknown_word(error, "table", "format", name, names, FORMS);
}

status table_render(const struct table *table, enum table_format format, bool colour, struct text *text,
                    struct error *error)
{
    if (table->failed)
        return error_set(error, ERROR_MEMORY, "out of memory for a table of %zu rows", table_rows(table));
    struct layout *layout = lay_out(table);
    if (forms[format].add_cell != NULL)
        render(&forms[format], table, layout, colour, text);
    else
        render_json(table, text);
    free(layout);
    return OK;
}
