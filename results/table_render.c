/* The forms of a table: how each writes a cell, and what stands around. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "core/alloc.h"
#include "core/json.h"
#include "core/text.h"
#include "results/table.h"

/* --- What people see: a number with its ± is one cell --- */

static void copy_table(struct table *to, const struct table *from)
{
    for (size_t i = 0; i < from->columns; i++)
        table_add_column(to, &from->column[i]);
    for (size_t i = 0; i < from->count; i++) {
        table_add_cell(to, &from->cell[i]);
        to->cell[i].begins = from->cell[i].begins;
    }
}

/* Whether a column is the ± of the one to its left: "last" and "last ±", "mean" and "±". */
static bool is_spread(const struct table *table, size_t column)
{
    const char *title = table->column[column].title, *sign = strstr(title, "±");
    if (column == 0 || sign == NULL || strcmp(sign, "±") != 0)
        return false;
    for (size_t row = 0; row < table_rows(table); row++)
        if (table_cell_at(table, row, column - 1)->kind == CELL_TEXT)
            return false;
    const char *of = table->column[column - 1].title;
    return sign == title || (strncmp(of, title, strlen(of)) == 0 && strcmp(title + strlen(of), " ±") == 0);
}

/* width: of the column's numbers; 0: they are not aligned. */
static void join_spread(const struct table *table, size_t at, int width)
{
    struct table_cell *cell = &table->cell[at], *spread = cell + 1;
    size_t column = at % table->columns;
    char number[TABLE_NUMBER], half[TABLE_NUMBER];
    struct text text = {0};
    if (cell->kind == CELL_EMPTY)
        return;
    text_add(&text, "%s", table_cell_text(cell, table->column[column].decimals, number));
    const char *reads = table_cell_text(spread, table->column[column + 1].decimals, half);
    if (spread->kind == CELL_TEXT)
        text_add(&text, " %s", reads);
    else if (spread->kind != CELL_EMPTY)
        text_add(&text, " ± %*s", width, reads);
    else if (width > 0)
        text_add(&text, "   %*s", width, "");
    cell->kind = CELL_TEXT;
    cell->text = text.data;
}

static void join_spreads(struct table *table, bool aligned)
{
    OWNED bool *keep = xcalloc(table->columns + 1, sizeof *keep);
    char number[TABLE_NUMBER];
    for (size_t i = 0; i < table->columns; i++)
        keep[i] = !is_spread(table, i);
    for (size_t i = 0; i + 1 < table->columns; i++) {
        size_t width = 0;
        for (size_t row = 0; aligned && !keep[i + 1] && row < table_rows(table); row++) {
            const struct table_cell *cell = table_cell_at(table, row, i + 1);
            size_t size = strlen(table_cell_text(cell, table->column[i + 1].decimals, number));
            width = cell->kind != CELL_TEXT && size > width ? size : width;
        }
        for (size_t row = 0; !keep[i + 1] && row < table_rows(table); row++)
            join_spread(table, row * table->columns + i, (int)width);
        table->column[i].align = keep[i + 1] ? table->column[i].align : ALIGN_RIGHT;
    }
    table_keep(table, keep);
}

/* --- Layout, of the forms for people --- */

enum { TEXT_LEAST = 24, LAST_LEAST = 40, TITLE_LEAST = 10 /* columns that a terminal of any width gives them */ };

struct column {
    size_t width, least;
    bool right;
};

/* A cell of the head or of a row on its way into a form. */
struct shown {
    const struct column *column;
    const char *reads;                       /* what a terminal shows of it */
    bool head, number, marked, colour, last; /* last: of its row */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The bytes of a visible text that a line of `limit` columns takes, up to a blank or behind a mark where it can; *width: the
 * columns that they take. */
static size_t take_line(const char *visible, size_t limit, size_t *width)
{
    size_t at = 0, end = 0, columns = 0;
    *width = 0;
    while (visible[at] != 0) {
        utf8proc_int32_t code;
        size_t bytes = (size_t)utf8proc_iterate((const utf8proc_uint8_t *)visible + at, -1, &code);
        columns += (size_t)utf8proc_charwidth(code);
        if (columns > limit && at > 0)
            break;
        at += bytes;
        if (visible[at] == ' ' || strchr("_./,|", visible[at - 1]) != NULL) {
            end = at;
            *width = columns;
        }
    }
    if (visible[at] != 0 && end > 0)
        return end;
    *width = least(columns, limit);
    return at;
}

static size_t width_of(const char *string)
{
    SCOPED(text_free) struct text visible = {0};
    size_t width;
    text_add_visible(&visible, string);
    take_line(visible.data, SIZE_MAX, &width);
    return width;
}

static bool begins_block(const struct table *table, size_t row)
{
    return table_cell_at(table, row, 0)->begins;
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
    struct column *columns = xcalloc(table->columns + 1, sizeof *columns);
    char number[TABLE_NUMBER];
    for (size_t i = 0; i < table->columns; i++) {
        enum table_align align = table->column[i].align;
        size_t cells = 0, title = width_of(table->column[i].title);
        for (size_t row = 0; row < table_rows(table); row++)
            cells = most(cells, width_of(shown_text(table, row, i, number)));
        columns[i].right = align == ALIGN_AUTO ? table_column_is_numeric(table, i) : align == ALIGN_RIGHT;
        columns[i].width = most(cells, title);
        size_t text = least(cells, i + 1 == table->columns ? LAST_LEAST : TEXT_LEAST);
        columns[i].least = most(columns[i].right ? cells : text, least(title, TITLE_LEAST));
    }
    return columns;
}

/* --- A terminal's width --- */

enum { GAP = 2 /* between columns */ };

/* What columns take at least; without those that are left out. */
static size_t least_width(const struct table *table, const struct column *columns, const bool *keep)
{
    size_t total = 0;
    for (size_t i = 0; i < table->columns; i++)
        total += keep[i] ? columns[i].least + (total > 0 ? GAP : 0) : 0;
    return total;
}

/* Of the columns that may be left out the first one to go; `columns`: none is left. */
static size_t first_to_go(const struct table *table, const bool *keep)
{
    size_t first = table->columns;
    for (size_t i = 0; i < table->columns; i++)
        if (keep[i] && table->column[i].extra > 0 &&
            (first == table->columns || table->column[i].extra < table->column[first].extra))
            first = i;
    return first;
}

static void leave_out(struct table *table, size_t width, struct text *left_out)
{
    OWNED struct column *columns = lay_out(table);
    OWNED bool *keep = xcalloc(table->columns + 1, sizeof *keep);
    for (size_t i = 0; i < table->columns; i++)
        keep[i] = true;
    for (size_t i; least_width(table, columns, keep) > width && (i = first_to_go(table, keep)) < table->columns;)
        keep[i] = false;
    for (size_t i = 0; i < table->columns; i++)
        if (!keep[i])
            text_add(left_out, "%s%s", left_out->size > 0 ? ", " : "", table->column[i].title);
    table_keep(table, keep);
}

static struct column *find_widest(struct column *columns, size_t count)
{
    struct column *widest = NULL;
    for (struct column *at = columns; at < columns + count; at++)
        if (at->width > at->least && (widest == NULL || at->width > widest->width))
            widest = at;
    return widest;
}

/* Lines are broken in the widest columns first; texts get less than they should where nothing else is left. */
static void narrow(const struct table *table, struct column *columns, size_t width)
{
    size_t total = 0;
    for (size_t i = 0; i < table->columns; i++)
        total += columns[i].width + (i > 0 ? GAP : 0);
    for (struct column *widest; total > width && (widest = find_widest(columns, table->columns)) != NULL; total--)
        widest->width--;
    for (size_t i = 0; total > width && i < table->columns; i++)
        columns[i].least = columns[i].right ? columns[i].least : TITLE_LEAST;
    for (struct column *widest; total > width && (widest = find_widest(columns, table->columns)) != NULL; total--)
        widest->width--;
}

/* --- Aligned text --- */

/* As many columns of a cell as its column is wide; what is left is the next line's. */
static void add_padded(struct text *text, struct shown *cell)
{
    const struct column *column = cell->column;
    const char *style = !cell->colour || *cell->reads == 0 ? ""
                        : cell->head                       ? "\033[1m"
                        : cell->marked                     ? "\033[1;32m"
                                                           : "";
    size_t width, bytes = take_line(cell->reads, column->width, &width);
    int padding = (int)(column->width - width);
    text_add(text, "%*s%s%.*s%s", column->right ? padding : 0, "", style, (int)bytes, cell->reads,
             style[0] ? "\033[0m" : "");
    text_add(text, "%*s%s", column->right || cell->last ? 0 : padding, "", cell->last ? "\n" : "  ");
    cell->reads += bytes + strspn(cell->reads + bytes, " ");
}

/* A row, whose texts take as many lines as they need. */
static void add_row(struct text *text, const struct table *table, struct shown *row)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < table->columns; i++) {
            add_padded(text, &row[i]);
            more |= *row[i].reads != 0;
        }
    }
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
    SCOPED(text_free) struct text valid = {0};
    const char *at = string;
    for (const char *invalid; (invalid = text_find_invalid(at)) != NULL; at = invalid + 1)
        text_add(&valid, "%.*s\xef\xbf\xbd", (int)(invalid - at), at);
    text_add(&valid, "%s", at);
    SCOPED(json_decref_at) json_t *value = json_string(valid.data);
    OWNED char *encoded = json_dumps(value, JSON_ENCODE_ANY | (text_is_visible(string) ? 0 : JSON_ENSURE_ASCII));
    text_add_replaced(text, encoded, deleted);
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
    const char *style = cell->marked ? "**" : "";
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
    text_add(text, "%s%s", cell->marked ? "\\textbf{" : "", negative ? "$-$" : argument ? "{}" : "");
    text_add_replaced(text, cell->reads + negative, latex_marks);
    text_add(text, "%s%s", cell->marked ? "}" : "", cell->last ? " \\\\\n" : " & ");
}

/* The document has to load booktabs. */
static void begin_latex(const struct table *table, const struct column *columns, struct text *text)
{
    text_add(text, "\\begin{tabular}{");
    for (size_t i = 0; i < table->columns; i++)
        text_add(text, columns[i].right ? "r" : "l");
    text_add(text, "}\n\\toprule\n");
}

static void add_midrule(const struct table *table, const struct column *columns, struct text *text)
{
    text_add(text, "\\midrule\n");
}

/* --- Forms --- */

typedef void add_line(const struct table *table, const struct column *columns, struct text *text);

static void add_nothing(const struct table *table, const struct column *columns, struct text *text)
{
}

/* Without add_cell: JSON, and text, where a row may take several lines. */
static const struct form {
    void (*add_cell)(struct text *text, const struct shown *cell);
    add_line *begin, *below_head, *above_block;
    const char *end;
    bool exact;
} forms[] = {
    [TABLE_TEXT] = {NULL, add_nothing, add_rule, add_rule, "", false},
    [TABLE_CSV] = {add_csv, add_nothing, add_nothing, add_nothing, "", true},
    [TABLE_JSON] = {0},
    [TABLE_MARKDOWN] = {add_markdown, add_nothing, add_alignments, add_nothing, "", false},
    [TABLE_LATEX] = {add_latex, begin_latex, add_midrule, add_midrule, "\\bottomrule\n\\end{tabular}\n", false},
};

/* reads: the texts of its cells, which become visible here. */
static void add_shown(const struct form *form, const struct table *table, struct shown *row, struct text *visible,
                      struct text *text)
{
    for (size_t i = 0; i < table->columns; i++) {
        text_clear(&visible[i]);
        text_add_visible(&visible[i], row[i].reads);
        row[i].reads = visible[i].data;
        row[i].last = i + 1 == table->columns;
        if (form->add_cell != NULL)
            form->add_cell(text, &row[i]);
    }
    if (form->add_cell == NULL)
        add_row(text, table, row);
}

static struct shown shown_cell(const struct form *form, const struct table *table, size_t row, size_t i,
                               const struct column *column, char number[TABLE_NUMBER])
{
    const struct table_cell *cell = table_cell_at(table, row, i);
    const char *reads = form->exact ? table_cell_text(cell, DECIMALS_EXACT, number) : shown_text(table, row, i, number);
    bool counts = cell->kind != CELL_TEXT || (column->right && *reads == '-' && strspn(reads, "-0123456789. ±") > 1);
    return (struct shown){.column = column, .reads = reads, .number = counts, .marked = cell->marked && *reads != 0};
}

static void render(const struct form *form, const struct table *table, const struct column *columns, bool colour,
                   struct text *text)
{
    OWNED struct shown *row = xcalloc(table->columns + 1, sizeof *row);
    OWNED struct text *visible = xcalloc(table->columns + 1, sizeof *visible);
    OWNED char(*number)[TABLE_NUMBER] = xcalloc(table->columns + 1, sizeof *number);
    form->begin(table, columns, text);
    for (size_t i = 0; i < table->columns; i++)
        row[i] = (struct shown){.column = &columns[i], .reads = table->column[i].title, .head = true, .colour = colour};
    add_shown(form, table, row, visible, text);
    form->below_head(table, columns, text);
    for (size_t r = 0; r < table_rows(table); r++) {
        for (size_t i = 0; i < table->columns; i++) {
            row[i] = shown_cell(form, table, r, i, &columns[i], number[i]);
            row[i].colour = colour;
        }
        if (r > 0 && begins_block(table, r))
            form->above_block(table, columns, text);
        add_shown(form, table, row, visible, text);
    }
    text_add(text, "%s", form->end);
    for (size_t i = 0; i < table->columns; i++)
        text_free(&visible[i]);
}

/* width: of a terminal, 0: any. */
static void render_rows(const struct table *table, enum table_format format, size_t width, bool colour,
                        struct text *text, struct text *left_out)
{
    SCOPED(table_free) struct table shown = {0};
    copy_table(&shown, table);
    if (!forms[format].exact)
        join_spreads(&shown, format == TABLE_TEXT);
    if (width > 0)
        leave_out(&shown, width, left_out);
    OWNED struct column *columns = lay_out(&shown);
    if (width > 0)
        narrow(&shown, columns, width);
    render(&forms[format], &shown, columns, colour, text);
}

void table_render(const struct table *table, enum table_format format, bool colour, struct text *text)
{
    if (format == TABLE_JSON)
        render_json(table, text);
    else
        render_rows(table, format, 0, colour, text, NULL);
}

void table_render_within(const struct table *table, size_t width, bool colour, struct text *text, struct text *left_out)
{
    render_rows(table, TABLE_TEXT, width, colour, text, left_out);
}
