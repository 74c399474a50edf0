/* The forms of a table: how each writes a cell, and what stands around. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "core/characters.h"
#include "results/table.h"

#define NUMBER_SIZE 400 /* the longest double with decimals */
#define WIDTH_LIMIT 72  /* characters of a cell */

/* The shortest digits that read back as the same number. */
static void format_exact(double value, char number[NUMBER_SIZE])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(number, NUMBER_SIZE, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            return;
    }
}

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

/* Appends the part of string that a terminal shows, cut to limit columns, and returns its columns. Formats for programs
 * have the full text. */
static size_t clip(const char *string, size_t limit, struct text *shown)
{
    struct text visible = {0};
    text_add_visible(&visible, string);
    size_t width = 0, fits = 0; /* bytes that leave room for the ellipsis */
    const char *at = visible.data ? visible.data : "";
    while (*at && width <= limit) {
        utf8proc_int32_t code;
        utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)at, -1, &code);
        width += (size_t)utf8proc_charwidth(code);
        at += size;
        if (width < limit)
            fits = (size_t)(at - visible.data);
    }
    bool cut = width > limit;
    if (visible.data)
        text_add_bytes(shown, visible.data, cut ? fits : visible.size);
    if (cut)
        text_add(shown, "…");
    shown->failed |= visible.failed;
    text_free(&visible);
    return cut ? limit : width;
}

static size_t display_width(const char *string, size_t limit)
{
    struct text shown = {0};
    size_t width = clip(string, limit, &shown);
    text_free(&shown);
    return width;
}

static bool aligned_right(const struct table *table, size_t column)
{
    if (table->column[column].align != ALIGN_AUTO)
        return table->column[column].align == ALIGN_RIGHT;
    return table_column_is_numeric(table, column);
}

/* The shown text of a column's best cell, "" when there is none; cells with the same text are equally good. */
struct best {
    char number[NUMBER_SIZE];
};

static double cell_number(const struct table_cell *cell)
{
    return cell->kind == CELL_INTEGER ? (double)cell->integer : cell->real;
}

static void find_best(const struct table *table, size_t first, size_t end, size_t column, struct best *best)
{
    const struct table_column *about = &table->column[column];
    const struct table_cell *found = NULL;
    best->number[0] = '\0';
    if (about->best == BEST_NONE || end - first < 2)
        return;
    for (size_t row = first; row < end; row++) {
        const struct table_cell *cell = table_cell_at(table, row, column);
        if (cell->kind != CELL_INTEGER && cell->kind != CELL_REAL)
            continue;
        double ahead = found ? cell_number(cell) - cell_number(found) : 0;
        if (!found || (about->best == BEST_HIGHEST ? ahead > 0 : ahead < 0))
            found = cell;
    }
    char number[NUMBER_SIZE];
    if (found)
        snprintf(best->number, sizeof best->number, "%s", cell_text(found, about->decimals, number));
}

static bool is_best(const struct best *best, const struct table_cell *cell, const char *reads)
{
    return best->number[0] && cell->kind != CELL_TEXT && strcmp(best->number, reads) == 0;
}

/* Layout of a column in the forms for people. */
struct layout {
    size_t width, limit;
    bool right;
    struct best best; /* of the block that enter_row entered last */
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
        find_best(table, row, block_end(table, row), column, &layout[column].best);
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
    struct layout *layout = calloc(table->columns ? table->columns : 1, sizeof *layout);
    for (size_t column = 0; layout && column < table->columns; column++) {
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
    const char *reads;
    bool head, number, best, last; /* last: of its row */
};

static void add_padded(struct text *text, const struct shown *cell, const struct layout *layout, bool colour)
{
    struct text shown = {0};
    int padding = (int)(layout->width - clip(cell->reads, layout->limit, &shown));
    const char *style = !colour ? "" : cell->head ? "\033[1m" : cell->best ? "\033[1;32m" : "";
    text_add(text, "%*s%s%s%s", layout->right ? padding : 0, "", style, shown.data ? shown.data : "",
             style[0] ? "\033[0m" : "");
    text_add(text, "%*s%s", layout->right || cell->last ? 0 : padding, "", cell->last ? "\n" : "  ");
    text->failed |= shown.failed;
    text_free(&shown);
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
static void add_csv_field(struct text *text, const struct shown *cell, const struct layout *layout, bool colour)
{
    (void)layout, (void)colour;
    struct text visible = {0};
    if (is_formula(cell->reads))
        text_add(&visible, "'");
    text_add_visible(&visible, cell->reads);
    const char *shown = visible.data != NULL ? visible.data : "";
    bool quoted = strpbrk(shown, ",\"") != NULL;
    text_add(text, "%s", quoted ? "\"" : "");
    for (const char *at = shown; *at; at++)
        text_add(text, *at == '"' ? "\"\"" : "%c", *at);
    text_add(text, "%s%s", quoted ? "\"" : "", cell->last ? "\r\n" : ",");
    text->failed |= visible.failed;
    text_free(&visible);
}

static const char *exact_text(const struct table_cell *cell, char number[NUMBER_SIZE])
{
    if (cell->kind != CELL_REAL)
        return cell_text(cell, 0, number);
    format_exact(cell->real, number);
    return number;
}

/* Valid UTF-8: a byte that is none becomes U+FFFD. */
static void add_valid(struct text *text, const char *bytes)
{
    for (utf8proc_int32_t code; *bytes;) {
        utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)bytes, -1, &code);
        text_add_bytes(text, size > 0 ? bytes : "\xef\xbf\xbd", size > 0 ? (size_t)size : 3);
        bytes += size > 0 ? size : 1;
    }
}

/* The exact text. Characters that a terminal would obey are escaped; JSON requires that only below U+0020. */
static void add_json_string(struct text *text, const char *string)
{
    struct text valid = {0};
    add_valid(&valid, string);
    json_t *value = valid.failed ? NULL : json_string(valid.data ? valid.data : "");
    char *encoded =
        value ? json_dumps(value, JSON_ENCODE_ANY | (text_is_visible(string) ? 0 : JSON_ENSURE_ASCII)) : NULL;
    for (const char *at = encoded ? encoded : ""; *at; at++)
        text_add(text, *at == 0x7f ? "\\u007F" : "%c", *at);
    text->failed |= encoded == NULL;
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

static void add_markdown(struct text *text, const struct shown *cell, const struct layout *layout, bool colour)
{
    (void)layout, (void)colour;
    struct text visible = {0};
    const char *style = cell->best ? "**" : "";
    text_add_visible(&visible, cell->reads);
    text_add(text, "| %s", style);
    for (const char *at = visible.data ? visible.data : ""; *at; at++)
        if (*at == '<' || *at == '&')
            text_add(text, *at == '<' ? "&lt;" : "&amp;");
        else
            text_add(text, strchr("|\\`*_", *at) ? "\\%c" : "%c", *at);
    text_add(text, "%s %s", style, cell->last ? "|\n" : "");
    text->failed |= visible.failed;
    text_free(&visible);
}

static void add_alignments(const struct table *table, const struct layout *layout, struct text *text)
{
    for (size_t column = 0; column < table->columns; column++)
        text_add(text, "| %s %s", layout[column].right ? "---:" : "---", column + 1 == table->columns ? "|\n" : "");
}

/* Letters beyond ASCII in names and titles that pdfLaTeX does not know by itself. */
static const struct {
    const char *letter, *command;
} latex_letters[] = {{"−", "$-$"},    {"×", "$\\times$"}, {"±", "$\\pm$"}, {"·", "$\\cdot$"},
                     {"→", "$\\to$"}, {"≤", "$\\le$"},    {"≥", "$\\ge$"}, {"…", "\\dots{}"}};

/* Returns the bytes that were read. */
static size_t add_latex_character(struct text *text, const char *at)
{
    for (size_t i = 0; i < sizeof latex_letters / sizeof *latex_letters; i++) {
        size_t size = strlen(latex_letters[i].letter);
        if (strncmp(at, latex_letters[i].letter, size) != 0)
            continue;
        text_add(text, "%s", latex_letters[i].command);
        return size;
    }
    if (*at == '\\')
        text_add(text, "\\textbackslash{}");
    else if (*at == '~' || *at == '^')
        text_add(text, *at == '~' ? "\\textasciitilde{}" : "\\textasciicircum{}");
    else if (*at == '<' || *at == '>' || *at == '|')
        text_add(text, "$%c$", *at); /* other glyphs in the old font encoding */
    else
        text_add(text, strchr("&%$#_{}", *at) ? "\\%c" : "%c", *at);
    return 1;
}

static void add_latex_cell(struct text *text, const struct shown *cell, const struct layout *layout, bool colour)
{
    (void)layout, (void)colour;
    struct text visible = {0};
    text_add_visible(&visible, cell->reads);
    text_add(text, "%s", cell->best ? "\\textbf{" : "");
    const char *at = visible.data ? visible.data : "";
    bool sign = cell->number && *at == '-';
    text_add(text, "%s",
             sign                       ? "$-$"
             : *at == '[' || *at == '*' ? "{}"
                                        : ""); /* after a row's end an argument begins so */
    for (at += sign; *at; at++)
        at += add_latex_character(text, at) - 1;
    text_add(text, "%s%s", cell->best ? "}" : "", cell->last ? " \\\\\n" : " & ");
    text->failed |= visible.failed;
    text_free(&visible);
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
    void (*add_cell)(struct text *text, const struct shown *cell, const struct layout *layout, bool colour);
    add_line *begin, *below_head, *above_block; /* NULL: nothing */
    const char *end;
} forms[] = {{"table", false, add_padded, NULL, add_rule, add_rule, ""},
             {"csv", true, add_csv_field, NULL, NULL, NULL, ""},
             {"json", true, NULL, NULL, NULL, NULL, ""},
             {"markdown", false, add_markdown, NULL, add_alignments, NULL, ""},
             {"latex", false, add_latex_cell, begin_latex, add_midrule, add_midrule, "\\bottomrule\n\\end{tabular}\n"}};

static void render(const struct form *form, const struct table *table, struct layout *layout, bool colour,
                   struct text *text)
{
    if (form->begin != NULL)
        form->begin(table, layout, text);
    for (size_t column = 0; column < table->columns; column++)
        form->add_cell(
            text,
            &(struct shown){.reads = table->column[column].title, .head = true, .last = column + 1 == table->columns},
            &layout[column], colour);
    if (form->below_head != NULL)
        form->below_head(table, layout, text);
    for (size_t i = 0; i < table_rows(table) * table->columns; i++) {
        size_t row = i / table->columns, column = i % table->columns;
        const struct table_cell *cell = &table->cell[i];
        char number[NUMBER_SIZE];
        if (column == 0 && enter_row(table, layout, row) && form->above_block != NULL)
            form->above_block(table, layout, text);
        const char *reads = form->exact ? exact_text(cell, number) : shown_text(table, row, column, number);
        form->add_cell(text,
                       &(struct shown){.reads = reads,
                                       .number = cell->kind == CELL_INTEGER || cell->kind == CELL_REAL,
                                       .best = is_best(&layout[column].best, cell, reads),
                                       .last = column + 1 == table->columns},
                       &layout[column], colour);
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
    const char *nearest = nearest_word(name, names, FORMS);
    return error_set(error, ERROR_ARGUMENT,
                     "unknown format \"%.40s\"%s%s%s: expected table, csv, json, markdown or latex", name,
                     nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

status table_render(const struct table *table, enum table_format format, bool colour, struct text *text,
                    struct error *error)
{
    struct layout *layout = table->failed ? NULL : lay_out(table);
    struct text rendered = {0};
    if (layout) {
        if (forms[format].add_cell != NULL)
            render(&forms[format], table, layout, colour, &rendered);
        else
            render_json(table, &rendered);
        if (!rendered.failed)
            text_add_bytes(text, rendered.data ? rendered.data : "", rendered.size);
    }
    bool failed = !layout || rendered.failed || text->failed;
    text_free(&rendered);
    free(layout);
    return failed ? error_set(error, ERROR_MEMORY, "out of memory for a table of %zu rows", table_rows(table)) : OK;
}
