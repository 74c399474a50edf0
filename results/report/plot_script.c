/* Figures in gnuplot's words. Names from the database are single-quoted, where gnuplot sees nothing but text. */
#include <math.h>
#include <string.h>
#include <utf8proc.h>

#include "results/report/plot.h"

#define INK "'#222222'"

/* Points of the drawing, of which the bitmap has two by two pixels. */
enum {
    PANEL_WIDTH = 230,
    PANEL_HEIGHT = 175,
    INTERVALS_WIDTH = 220,
    INTERVALS_EDGE = 12,
    INTERVALS_FOOT = 45,
    ROW_HEIGHT = 22,
    CELL = 42,
    TITLE_HEIGHT = 40,
    ROW_MOST = 4, /* panels that still stand in one row */
    LETTER = 7,
    LABEL_MOST = 60, /* letters of a label, and of one in a panel's place with its mark beside it */
    KEY_MOST = 28,
    KEY_MARGIN = 6,
    KEY_LINE = 16,
    HEAD = 24 /* the title above the panels */
};

/* As in style.css, of its light theme. */
static const char *const colours[REPORT_BEST] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
static const int marks[REPORT_BEST] = {7, 5, 9, 13, 11, 2};
static const char palette[] =
    "set palette maxcolors 9 defined (0 '#f7fbff', 1 '#deebf7', 2 '#c6dbef', 3 '#9ecae1', 4 '#6baed6', "
    "5 '#4292c6', 6 '#2171b5', 7 '#08519c', 8 '#08306b')\n";

/* --- Words --- */

/* '…' of valid UTF-8 in one line of at most `most` characters; % is doubled where gnuplot reads a format. */
static void add_quoted(struct text *script, const char *string, size_t most, bool format)
{
    text_add(script, "'");
    size_t left = strlen(string), characters = 0;
    while (left > 0 && characters++ < most) {
        utf8proc_int32_t code;
        utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)string, (utf8proc_ssize_t)left, &code);
        if (size <= 0 || code < 0x20 || (code >= 0x7f && code < 0xa0))
            text_add(script, "?");
        else if (code == '\'' || (code == '%' && format))
            text_add(script, "%c%c", (char)code, (char)code);
        else
            text_add_bytes(script, string, (size_t)size);
        size = size <= 0 ? 1 : size;
        string += size;
        left -= (size_t)size;
    }
    text_add(script, left > 0 ? "…'" : "'");
}

/* As much of the title as has room. */
static void add_title(struct text *script, const char *command, const char *title, size_t width)
{
    text_add(script, "%s ", command);
    add_quoted(script, title, width / LETTER, false);
    text_add(script, "\n");
}

/* Every first, second, fifth, … of the labels. */
static void add_label_tics(struct text *script, const char *axis, const char **label, size_t count, size_t stride)
{
    text_add(script, "set %stics nomirror (", axis);
    for (size_t i = 0; i < count; i += stride) {
        text_add(script, "%s", i ? ", " : "");
        add_quoted(script, label[i], LABEL_MOST, true);
        text_add(script, " %zu", i);
    }
    text_add(script, ")\n");
}

static void add_number_tics(struct text *script, const char *axis, const struct figure_range *range, bool whole)
{
    double ticks[FIGURE_TICKS];
    size_t count = (whole ? figure_whole_ticks : figure_ticks)(range->low, range->high, ticks);
    text_add(script, "set %srange [%.17g:%.17g]\nset %stics nomirror (", axis, range->low, range->high, axis);
    for (size_t i = 0; i < count; i++)
        text_add(script, "%s%.6g", i ? ", " : "", ticks[i]);
    text_add(script, ")\n");
}

/* --- Panels --- */

static void add_lines(struct text *script, const struct figure *figure, const struct figure_panel *panel, size_t *block)
{
    text_add(script, "unset arrow\n");
    if (!isnan(panel->mark))
        text_add(script, "set arrow from %g, graph 0 to %g, graph 1 nohead dashtype 3 lc rgb " INK "\n", panel->mark,
                 panel->mark);
    text_add(script, "plot ");
    for (size_t s = 0; s < panel->series_count; s++)
        if (panel->series[s].low != NULL)
            text_add(script,
                     "data index %zu using 1:3:4 with filledcurves lc rgb '%s' fs transparent solid 0.15 noborder, ",
                     *block + s, colours[panel->series[s].colour % REPORT_BEST]);
    for (size_t s = 0; s < panel->series_count; s++) {
        size_t colour = panel->series[s].colour % REPORT_BEST;
        text_add(script, "%sdata index %zu using 1:2 with %s lw 1.4 lc rgb '%s'", s ? ", " : "", *block + s,
                 figure->points ? "linespoints" : "lines", colours[colour]);
        if (figure->points)
            text_add(script, " pt %d ps 0.5", marks[colour]);
    }
    text_add(script, panel->series_count ? "\n" : "NaN\n");
    *block += panel->series_count;
}

static void add_heat(struct text *script, const struct figure *figure, const struct figure_panel *panel,
                     const struct figure_range *range, size_t *block)
{
    text_add(script, "plot data index %zu using 1:2:3 with image pixels", *block);
    if (figure->printed) {
        double middle = range->low + (range->high - range->low) * 6 / 9;
        for (int dark = 0; dark < 2; dark++)
            text_add(script,
                     ", data index %zu using 1:2:($3 %s %.17g ? sprintf('%%.%df', $3) : '') with labels font ',9' tc "
                     "rgb '%s'",
                     *block, dark ? "<" : ">=", middle, figure->decimals, dark ? "#222222" : "#ffffff");
    }
    ++*block;
    if (panel->framed != NULL)
        text_add(script, ", data index %zu using 1:2 with points pt %d ps %s lc rgb " INK, (*block)++,
                 figure->printed ? 64 : 7, figure->printed ? "3" : "0.25");
    text_add(script, "\n");
}

/* The names of the rows stand beside the first panel. */
static void add_rows(struct text *script, const struct figure_panel *panel, bool named)
{
    text_add(script, "set yrange [%g:-0.5]\nset ytics nomirror scale 0 (", (double)panel->intervals - 0.5);
    for (size_t i = 0; i < panel->intervals; i++) {
        text_add(script, "%s", i ? ", " : "");
        add_quoted(script, named ? panel->interval[i].label : "", LABEL_MOST, true);
        text_add(script, " %zu", i);
    }
    text_add(script, ")\n");
}

static void add_intervals(struct text *script, const struct figure *figure, const struct figure_panel *panel,
                          size_t *block)
{
    text_add(script, "unset arrow\n");
    if (figure->zero)
        text_add(script, "set arrow from 0, graph 0 to 0, graph 1 nohead dashtype 3 lc rgb " INK "\n");
    text_add(script, "plot ");
    for (size_t i = 0; i < panel->intervals; i++) {
        size_t colour = panel->interval[i].colour % REPORT_BEST;
        text_add(script, "%s", i ? ", " : "");
        if (!isnan(panel->interval[i].low))
            text_add(script,
                     "data index %zu every ::%zu::%zu using 2:1:3:4 with xerrorbars pt %d ps 0.01 lw 1.4 lc rgb '%s', ",
                     *block, i, i, marks[colour], colours[colour]);
        text_add(script, "data index %zu every ::%zu::%zu using 2:1 with points pt %d ps 0.8 lc rgb '%s'", *block, i, i,
                 marks[colour], colours[colour]);
    }
    text_add(script, panel->intervals ? "\n" : "NaN\n");
    ++*block;
}

/* --- The whole --- */

struct layout {
    size_t across, width, height;   /* panels in a row; the whole */
    size_t cell_width, cell_height; /* of a panel */
    size_t names;                   /* room for names at the left of FIGURE_INTERVALS */
    size_t foot;                    /* room for the names of the colours below the panels; 0: they have a panel's */
};

static bool has_key(const struct figure *figure)
{
    size_t used = 0;
    for (size_t i = 0; figure->kind == FIGURE_LINES && i < figure->legend_count; i++)
        used += figure_uses(figure, i);
    return used > 0 && figure->legend_count > 1;
}

static size_t letters(const char *string)
{
    size_t count = 0;
    for (; *string != 0; string++)
        count += ((unsigned char)*string & 0xc0) != 0x80;
    return count < LABEL_MOST ? count : LABEL_MOST;
}

static size_t longest_row(const struct figure *figure)
{
    size_t longest = 0;
    for (size_t i = 0; figure->panels > 0 && i < figure->panel[0].intervals; i++) {
        size_t length = letters(figure->panel[0].interval[i].label);
        longest = length > longest ? length : longest;
    }
    return longest;
}

static bool has_long_key(const struct figure *figure)
{
    bool is_long = false;
    for (size_t i = 0; has_key(figure) && i < figure->legend_count; i++)
        is_long |= figure_uses(figure, i) && letters(figure->legend[i]) > KEY_MOST;
    return is_long;
}

static void size_cells(struct layout *layout, const struct figure *figure)
{
    layout->cell_width = PANEL_WIDTH;
    layout->cell_height = PANEL_HEIGHT;
    if (figure->kind == FIGURE_INTERVALS) {
        layout->names = LETTER * longest_row(figure) + 2 * INTERVALS_EDGE;
        layout->cell_width = INTERVALS_WIDTH;
        layout->cell_height =
            INTERVALS_FOOT + TITLE_HEIGHT + ROW_HEIGHT * (figure->panels ? figure->panel[0].intervals : 0);
    } else if (figure->kind == FIGURE_HEAT && figure->printed) {
        layout->cell_width = 150 + CELL * figure->columns;
        layout->cell_height = 90 + CELL / 2 * figure->rows;
    } else if (figure->kind == FIGURE_HEAT) {
        layout->cell_height = 88 + 7 * figure->rows;
    }
}

static struct layout lay_out(const struct figure *figure)
{
    struct layout layout = {.foot = has_long_key(figure) ? KEY_LINE * (figure->legend_count + 1) : 0};
    size_t cells = figure->panels + (has_key(figure) && layout.foot == 0);
    size_cells(&layout, figure);
    cells = cells ? cells : 1;
    layout.across = cells <= ROW_MOST || figure->kind == FIGURE_INTERVALS ? cells : (size_t)ceil(sqrt((double)cells));
    layout.width = layout.names + layout.across * layout.cell_width;
    layout.height = (cells + layout.across - 1) / layout.across * layout.cell_height + HEAD + layout.foot;
    return layout;
}

/* What follows is drawn into this part of the whole, in points from the upper left corner. */
static void add_place(struct text *script, const struct layout *layout, size_t left, size_t top, size_t width,
                      size_t height)
{
    double across = (double)layout->width, down = (double)layout->height;
    text_add(script, "set origin %.5f,%.5f\nset size %.5f,%.5f\n", (double)left / across,
             1 - (double)(top + height) / down, (double)width / across, (double)height / down);
}

static void add_cell(struct text *script, const struct layout *layout, size_t number)
{
    add_place(script, layout, number % layout->across * layout->cell_width,
              HEAD + number / layout->across * layout->cell_height, layout->cell_width, layout->cell_height);
}

/* The names of the colours, in the cell after the last panel; long ones in a row of their own. */
static void add_key(struct text *script, const struct figure *figure, const struct layout *layout)
{
    bool below = layout->foot > 0;
    if (below)
        add_place(script, layout, 0, layout->height - layout->foot, layout->width, layout->foot);
    else
        add_cell(script, layout, figure->panels);
    text_add(script,
             "%sunset arrow\nset title ''\nunset border\nunset tics\nunset xlabel\nunset ylabel\nunset grid\n"
             "set yrange [0:1]\nset key %s Left reverse samplen 2\nplot ",
             below ? "set tmargin 0\nset bmargin 0\n" : "", below ? "left top" : "center center");
    for (size_t i = 0, named = 0; i < figure->legend_count; i++) {
        if (!figure_uses(figure, i))
            continue;
        text_add(script, "%sNaN with linespoints lw 1.4 pt %d ps 0.8 lc rgb '%s' title ", named++ ? ", " : "",
                 marks[i % REPORT_BEST], colours[i % REPORT_BEST]);
        add_quoted(script, figure->legend[i], layout->width / LETTER - KEY_MARGIN, false);
    }
    text_add(script, "\n");
}

static size_t stride_of(size_t count)
{
    return count <= 8 ? 1 : count <= 16 ? 2 : count <= 40 ? 5 : 10 * (1 + count / 100);
}

static void add_axes(struct text *script, const struct figure *figure)
{
    struct figure_range x = figure_range_x(figure);
    if (figure->x_title != NULL)
        add_title(script, "set xlabel", figure->x_title, PANEL_WIDTH);
    if (figure->kind != FIGURE_HEAT)
        text_add(script, "set grid %s lt 1 lw 0.5 lc rgb '#dddddd'\n", figure->kind == FIGURE_LINES ? "y" : "x");
    if (figure->kind == FIGURE_LINES)
        add_number_tics(script, "x", &x, true);
    if (figure->kind != FIGURE_HEAT)
        return;
    text_add(script, "set xrange [-0.5:%g]\nset yrange [%g:-0.5]\n%s", (double)figure->columns - 0.5,
             (double)figure->rows - 0.5, palette);
    add_label_tics(script, "x", figure->x_label, figure->columns, figure->printed ? 1 : stride_of(figure->columns));
    add_label_tics(script, "y", figure->y_label, figure->rows, figure->printed ? 1 : stride_of(figure->rows));
    text_add(script, figure->printed ? "set xtics rotate by 35 right\nunset colorbox\n" : "set colorbox\n");
}

/* Panels of intervals stand in one row; gnuplot's own layout would give each of them room for the names. */
static void add_margins(struct text *script, const struct layout *layout, size_t panel)
{
    double width = (double)layout->width, left = (double)(layout->names + panel * INTERVALS_WIDTH);
    text_add(script,
             "set lmargin at screen %.4f\nset rmargin at screen %.4f\nset tmargin at screen %.4f\n"
             "set bmargin at screen %.4f\n",
             left / width, (left + INTERVALS_WIDTH - 2 * INTERVALS_EDGE) / width,
             1 - 1.6 * TITLE_HEIGHT / (double)layout->height, INTERVALS_FOOT / (double)layout->height);
}

static void add_panel(struct text *script, const struct figure *figure, const struct layout *layout, size_t number,
                      size_t *block)
{
    static const char *const axis[] = {[FIGURE_LINES] = "y", [FIGURE_HEAT] = "cb", [FIGURE_INTERVALS] = "x"};
    const struct figure_panel *panel = &figure->panel[number];
    struct figure_range range = figure_range(figure, number);
    add_number_tics(script, axis[figure->kind], &range, false);
    add_title(script, "set title", panel->title, PANEL_WIDTH);
    if (figure->kind != FIGURE_INTERVALS)
        add_cell(script, layout, number);
    switch (figure->kind) {
    case FIGURE_LINES:
        add_lines(script, figure, panel, block);
        break;
    case FIGURE_HEAT:
        add_heat(script, figure, panel, &range, block);
        break;
    case FIGURE_INTERVALS:
        add_margins(script, layout, number);
        add_rows(script, panel, number == 0);
        add_intervals(script, figure, panel, block);
        break;
    }
}

void plot_script(struct text *script, const struct figure *figure)
{
    struct layout layout = lay_out(figure);
    size_t block = 0;
    text_add(script,
             "# Drawn by mtil report. After a change, gnuplot %s.gp draws %s.svg and %s.png anew.\n"
             "reset session\nset encoding utf8\nset termoption noenhanced\ndata = '%s.dat'\n"
             "do for [form in 'svg png'] {\n"
             "if (form eq 'svg') { set terminal svg noenhanced size %zu,%zu font 'Sans,9' background '#ffffff' }\n"
             "if (form eq 'png') { set terminal pngcairo noenhanced size %zu,%zu font 'Sans,9' fontscale 2 "
             "linewidth 2 pointscale 2 background '#ffffff' }\n"
             "set output '%s.'.form\n"
             "set border 3 lc rgb '#666666'\nset tics nomirror out scale 0.5 tc rgb " INK "\n"
             "set xtics norotate\nunset key\nunset grid\nunset tmargin\nunset bmargin\n",
             figure->name, figure->name, figure->name, figure->name, layout.width, layout.height, 2 * layout.width,
             2 * layout.height, figure->name);
    add_axes(script, figure);
    add_title(script, "set multiplot title", figure->title, layout.width);
    for (size_t i = 0; i < figure->panels; i++)
        add_panel(script, figure, &layout, i, &block);
    if (has_key(figure))
        add_key(script, figure, &layout);
    text_add(script, "unset multiplot\nset output\n}\n");
}

/* --- Data --- */

static void add_number(struct text *data, double value, char end)
{
    if (isnan(value))
        text_add(data, "NaN%c", end);
    else
        text_add(data, "%.17g%c", value, end);
}

static void add_series(struct text *data, const struct figure_series *series)
{
    for (size_t i = 0; i < series->points; i++) {
        add_number(data, series->x[i], ' ');
        add_number(data, series->y[i], series->low ? ' ' : '\n');
        if (series->low == NULL)
            continue;
        add_number(data, series->low[i], ' ');
        add_number(data, series->high[i], '\n');
    }
    text_add(data, series->points ? "\n\n" : "NaN NaN NaN NaN\n\n\n");
}

static void add_cells(struct text *data, const struct figure *figure, const struct figure_panel *panel)
{
    size_t cells = figure->rows * figure->columns, framed = 0;
    for (size_t i = 0; i < cells; i++) {
        text_add(data, "%zu %zu ", i % figure->columns, i / figure->columns);
        add_number(data, panel->value[i], '\n');
    }
    text_add(data, "\n\n");
    if (panel->framed == NULL)
        return;
    for (size_t i = 0; i < cells; i++) {
        framed += panel->framed[i];
        if (panel->framed[i])
            text_add(data, "%zu %zu\n", i % figure->columns, i / figure->columns);
    }
    text_add(data, framed ? "\n\n" : "NaN NaN\n\n\n");
}

void plot_data(struct text *data, const struct figure *figure)
{
    static const char *const columns[] = {
        [FIGURE_LINES] = "x y low high; a block per panel and series",
        [FIGURE_HEAT] = "column row value; a block per panel, and one of its framed cells",
        [FIGURE_INTERVALS] = "row mean low high; a block per panel",
    };
    text_add(data, "# %s\n", columns[figure->kind]);
    for (size_t p = 0; p < figure->panels; p++) {
        const struct figure_panel *panel = &figure->panel[p];
        for (size_t s = 0; s < panel->series_count; s++)
            add_series(data, &panel->series[s]);
        if (figure->kind == FIGURE_HEAT)
            add_cells(data, figure, panel);
        for (size_t i = 0; i < panel->intervals; i++) {
            text_add(data, "%zu ", i);
            add_number(data, panel->interval[i].mean, ' ');
            add_number(data, panel->interval[i].low, ' ');
            add_number(data, panel->interval[i].high, '\n');
        }
        text_add(data, figure->kind == FIGURE_INTERVALS ? "\n\n" : "");
    }
}
