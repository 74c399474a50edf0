/* Figures from the rows of an answer, whose columns have these names:
 *     panel     title of a panel; rows of one panel are neighbours (none: one panel)
 *     series    what a line, a mean or a cell is called; colour: its number (none: in the order of the rows)
 *     x, y      of a point, a cell or a mean; low, high: ends of its band or interval; mark: of a vertical line
 *     row, column, value     of a shade, and framed; row may have another name if it is the first column; extra: 1 for
 *               what only the table shows
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/query/internal.h"
#include "results/report/part.h"

/* A figure that is being built. */
struct builder {
    const struct part *part;
    struct report *report;
    size_t rows;
    struct figure figure;
    struct figure_panel *panel;
    const char **legend; /* [REPORT_BEST] */
};

static bool starts(const struct builder *b, size_t row, const char *column)
{
    size_t at = query_column(b->part->rows, column);
    return row == b->part->first || (at != SIZE_MAX && !query_same_cell(table_cell_at(b->part->rows, row, at),
                                                                        table_cell_at(b->part->rows, row - 1, at)));
}

static bool is_drawn(const struct builder *b, size_t row)
{
    return !(part_real(b->part, row, "extra") > 0);
}

/* The panel of the row, a new one where it is the first of it. */
static struct figure_panel *panel_of(struct builder *b, size_t row)
{
    if (starts(b, row, "panel")) {
        double mark = part_real(b->part, row, "mark");
        b->panel[b->figure.panels++] = (struct figure_panel){.title = part_text(b->part, row, "panel"), .mark = mark};
    }
    return &b->panel[b->figure.panels - 1];
}

/* Its number if the row has one, or the place of its name in the legend. */
static size_t colour_of(struct builder *b, size_t row)
{
    double number = part_real(b->part, row, "colour");
    const char *name = part_text(b->part, row, "series");
    size_t colour = 0;
    if (number >= 0)
        colour = (size_t)number % REPORT_BEST;
    else
        while (colour + 1 < REPORT_BEST && b->legend[colour] != NULL && strcmp(b->legend[colour], name) != 0)
            colour++;
    b->legend[colour] = name;
    return colour;
}

static void *take(struct builder *b, size_t count, size_t size)
{
    return report_take(b->report, count, size);
}

/* --- Lines --- */

static bool is_known(const struct builder *b, const char *column)
{
    return query_column(b->part->rows, column) != SIZE_MAX;
}

static void fill_lines(struct builder *b)
{
    bool band = is_known(b, "low") && is_known(b, "high");
    double *x = take(b, b->rows, sizeof *x), *y = take(b, b->rows, sizeof *y),
           *low = band ? take(b, b->rows, sizeof *low) : NULL, *high = band ? take(b, b->rows, sizeof *high) : NULL;
    struct figure_series *series = take(b, b->rows, sizeof *series), *next = series;
    for (size_t i = 0; i < b->rows; i++) {
        size_t row = b->part->first + i;
        bool first = starts(b, row, "panel");
        struct figure_panel *panel = panel_of(b, row);
        if (first)
            panel->series = next;
        if (first || starts(b, row, "series")) {
            *next++ = (struct figure_series){.colour = colour_of(b, row),
                                             .x = x + i,
                                             .y = y + i,
                                             .low = band ? low + i : NULL,
                                             .high = band ? high + i : NULL};
            panel->series_count++;
        }
        next[-1].points++;
        x[i] = part_real(b->part, row, "x");
        y[i] = part_real(b->part, row, "y");
        if (band) {
            low[i] = part_real(b->part, row, "low");
            high[i] = part_real(b->part, row, "high");
        }
    }
}

/* --- Means and their intervals --- */

static void fill_intervals(struct builder *b)
{
    struct figure_interval *rows = take(b, b->rows, sizeof *rows);
    for (size_t i = 0; rows != NULL && i < b->rows; i++) {
        size_t row = b->part->first + i;
        bool first = starts(b, row, "panel");
        struct figure_panel *panel = panel_of(b, row);
        if (first)
            panel->interval = rows + i;
        panel->intervals++;
        rows[i] = (struct figure_interval){.label = part_text(b->part, row, "series"),
                                           .colour = colour_of(b, row),
                                           .mean = part_real(b->part, row, "y"),
                                           .low = part_real(b->part, row, "low"),
                                           .high = part_real(b->part, row, "high")};
    }
}

/* --- Shades --- */

/* The names of a column's cells, each once, in the order of the rows; place [rows]: of each row's. */
static const char **names_of(struct builder *b, const char *column, size_t *place, size_t *count)
{
    size_t capacity = 16;
    const char **names = take(b, capacity, sizeof *names);
    for (size_t i = 0; names != NULL && i < b->rows; i++) {
        if (!is_drawn(b, b->part->first + i))
            continue;
        const char *name = part_text(b->part, b->part->first + i, column);
        size_t at =
            i > 0 && place[i - 1] + 1 < *count && strcmp(names[place[i - 1] + 1], name) == 0 ? place[i - 1] + 1 : 0;
        while (at < *count && strcmp(names[at], name) != 0)
            at++;
        place[i] = at;
        if (at < *count)
            continue;
        if (*count == capacity) {
            const char **larger = take(b, 2 * capacity, sizeof *larger);
            if (larger == NULL)
                return NULL;
            memcpy(larger, names, capacity * sizeof *larger);
            names = larger;
            capacity *= 2;
        }
        names[(*count)++] = name;
    }
    return names;
}

static const char *row_column(const struct builder *b)
{
    if (is_known(b, "row"))
        return "row";
    static const char *const others[] = {"choice", "panel", "extra", "framed"};
    for (size_t column = 0; column < b->part->rows->columns; column++) {
        const char *title = b->part->rows->column[column].title;
        bool other = false;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            other |= strcmp(title, others[i]) == 0;
        if (!other && part_is_column(b->part, title))
            return title;
    }
    return "row";
}

static void fill_shades(struct builder *b)
{
    size_t *row_at = take(b, b->rows, sizeof *row_at), *column_at = take(b, b->rows, sizeof *column_at), cells;
    struct figure *f = &b->figure;
    f->y_label = names_of(b, row_column(b), row_at, &f->rows);
    f->x_label = names_of(b, "column", column_at, &f->columns);
    cells = f->rows * f->columns;
    double *value = NULL;
    bool *framed = NULL;
    for (size_t i = 0; i < b->rows; i++) {
        size_t row = b->part->first + i;
        if (!is_drawn(b, row))
            continue;
        if (f->panels == 0 || starts(b, row, "panel")) {
            value = take(b, cells, sizeof *value);
            framed = is_known(b, "framed") && is_known(b, "panel") ? take(b, cells, sizeof *framed) : NULL;
            for (size_t k = 0; value != NULL && k < cells; k++)
                value[k] = (double)NAN;
            b->panel[f->panels++] = (struct figure_panel){
                .title = part_text(b->part, row, "panel"), .value = value, .framed = framed, .mark = (double)NAN};
        }
        size_t at = row_at[i] * f->columns + column_at[i];
        if (value != NULL)
            value[at] = part_real(b->part, row, "value");
        if (framed != NULL)
            framed[at] = part_real(b->part, row, "framed") > 0;
    }
}

/* --- Cells --- */

static void fill_cells(struct builder *b)
{
    struct figure *f = &b->figure;
    for (size_t row = b->part->first; row < b->part->end; row++) {
        f->columns = (size_t)fmax((double)f->columns, part_real(b->part, row, "x") + 1);
        f->rows = (size_t)fmax((double)f->rows, part_real(b->part, row, "y") + 1);
    }
    double *value = NULL;
    uint8_t *colour = NULL;
    for (size_t row = b->part->first; row < b->part->end; row++) {
        if (starts(b, row, "panel")) {
            value = take(b, f->columns * f->rows, sizeof *value);
            colour = take(b, f->columns * f->rows, sizeof *colour);
            for (size_t k = 0; value != NULL && k < f->columns * f->rows; k++)
                value[k] = (double)NAN;
            struct figure_panel *panel = panel_of(b, row);
            panel->value = value;
            panel->colour = colour;
        }
        double x = part_real(b->part, row, "x"), y = part_real(b->part, row, "y");
        if (!(x >= 0) || !(y >= 0) || value == NULL || colour == NULL)
            continue;
        value[(size_t)y * f->columns + (size_t)x] = part_real(b->part, row, "value");
        colour[(size_t)y * f->columns + (size_t)x] = (uint8_t)colour_of(b, row);
    }
}

/* --- The figure --- */

static const struct kind {
    const char *word;
    enum figure_kind kind;
    void (*fill)(struct builder *b);
    const char *needs[3]; /* columns */
} kinds[] = {
    {"line", FIGURE_LINES, fill_lines, {"x", "y"}},
    {"heat", FIGURE_HEAT, fill_shades, {"value"}},
    {"interval", FIGURE_INTERVALS, fill_intervals, {"y"}},
    {"cells", FIGURE_CELLS, fill_cells, {"x", "y"}},
};

/* Of the line "-- draw: line points 1". */
static status check_words(const struct part *part, struct error *error)
{
    static const char known[] = "line|heat|interval|cells|zero|points|fractions|noisy|own_ranges|printed|wrapped";
    for (const char *at = part_says(part, ON_DRAW); *at != 0; at += strspn(at, " ")) {
        char word[32];
        size_t length = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (!text_has_word(known, word) && strspn(word, "0123456789") != length)
            return error_set(error, ERROR_ARGUMENT, "draw: expected words of %s, found \"%s\"", known, word);
        at += length;
    }
    return OK;
}

static void read_head(struct builder *b)
{
    const struct part *part = b->part;
    struct figure_range range = part_range(part);
    const char *value = part_says(part, ON_VALUE);
    b->figure.name = part_name(part);
    b->figure.title = part_fill(part, part->question->title);
    b->figure.caption = part_says(part, ON_CAPTION) != NULL ? part_says(part, ON_CAPTION) : "";
    b->figure.x_title = part_says(part, ON_X);
    b->figure.y_title = part_says(part, ON_Y);
    b->figure.value_title = value;
    b->figure.low = range.low;
    b->figure.high = range.high;
    for (int decimals = 0; decimals < 10; decimals++) {
        char digit[2] = {(char)('0' + decimals), 0};
        b->figure.decimals = part_has_word(part, digit) ? decimals : b->figure.decimals;
    }
    b->figure.zero = part_has_word(part, "zero");
    b->figure.points = part_has_word(part, "points");
    b->figure.fractions = part_has_word(part, "fractions");
    b->figure.noisy = part_has_word(part, "noisy");
    b->figure.own_ranges = part_has_word(part, "own_ranges");
}

static status read_legend(struct builder *b, struct error *error)
{
    struct table table = {0};
    status result =
        report_ask(b->report, "SELECT colour, legend FROM configurations WHERE colour IS NOT NULL", &table, error);
    for (size_t row = 0; row < table_rows(&table); row++)
        b->legend[table_cell_at(&table, row, 0)->integer] = report_copy(b->report, table_cell_at(&table, row, 1)->text);
    table_free(&table);
    return result;
}

status part_figure(const struct part *part, struct error *error)
{
    struct builder b = {.part = part, .report = part->call->report, .rows = part->end - part->first};
    const struct kind *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        kind = part_has_word(part, kinds[i].word) ? &kinds[i] : kind;
    if (kind == NULL)
        return error_set(error, ERROR_ARGUMENT,
                         "expected \"-- draw: table, line, heat, interval or cells\", found \"%.60s\"",
                         part_says(part, ON_DRAW) != NULL ? part_says(part, ON_DRAW) : "");
    for (size_t i = 0; kind->needs[i] != NULL; i++)
        if (!is_known(&b, kind->needs[i]))
            return error_set(error, ERROR_ARGUMENT, "draw: %s needs a column %s", kind->word, kind->needs[i]);
    TRY(check_words(part, error));
    b.figure.kind = kind->kind;
    read_head(&b);
    b.figure.only_file = kind->kind == FIGURE_HEAT && !is_known(&b, "panel");
    b.figure.printed = b.figure.only_file || part_has_word(part, "printed");
    b.panel = take(&b, b.rows, sizeof *b.panel);
    b.legend = take(&b, REPORT_BEST, sizeof *b.legend);
    if (kind->kind == FIGURE_LINES)
        TRY(read_legend(&b, error));
    kind->fill(&b);
    b.figure.panel = b.panel;
    if (kind->kind == FIGURE_LINES || kind->kind == FIGURE_CELLS) {
        b.figure.legend = b.legend;
        b.figure.legend_count = REPORT_BEST;
    }
    return section_figure(part->call, &b.figure, error);
}
