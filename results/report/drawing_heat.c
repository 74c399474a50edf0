/* Cells in shades: many small ones, which show at a glance what a table could not, or some with their values in them. And
 * cells in colours, without gaps, as the patches of an image lie. */
#include <math.h>

#include "results/report/drawing.h"
#include "results/report/html.h"

#define WIDTH 260.0 /* on the page */
#define CELL 42.0   /* with a value in it */
#define WIDEST 60.0
#define LEFT 26.0
#define TOP 20.0
#define RIGHT 8.0          /* half a label beside the last column, which may be narrower */
#define TICK_EVERY 30.0    /* between the labels of an axis */
#define SLOPE 35.0         /* of the names below the columns */
#define WITH_DECIMALS 34.0 /* the least widths of cells with "100.0" and "100" in them */
#define WITH_VALUES 17.0
#define NAMES 0.45 /* of the width that the names of rows may take, in a file */

enum { NAME_MOST = 40, MIDDLE = 5 /* the shade that takes dark words in either theme */ };

struct grid {
    const struct figure *figure;
    const struct figure_panel *panel;
    struct figure_range range;
    double left, column, row, gap;
    size_t letters; /* of a name */
};

static double longest(const char *const *label, size_t count, size_t letters)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, draw_width(label[i], letters));
    return most;
}

/* Sets how the cells lie and returns the room below them. */
static double lay_out(struct grid *grid, double width)
{
    const struct figure *figure = grid->figure;
    double columns = (double)figure->columns, wide = width > 0 ? width : WIDTH;
    grid->gap = 1;
    if (figure->kind == FIGURE_CELLS) {
        grid->left = grid->gap = 0;
        grid->column = grid->row = wide / columns;
        return 0;
    }
    if (!figure->printed) {
        grid->left = LEFT;
        grid->column = (wide - LEFT - RIGHT) / columns;
        grid->row = 8;
        return 32;
    }
    if (width > 0) /* of a file, which cuts off what leaves it */
        grid->letters = (size_t)fmin(NAME_MOST, NAMES * width / draw_width("m", 1));
    grid->left = longest(figure->y_label, figure->rows, grid->letters) + 8;
    grid->column = width > 0 ? fmin((width - grid->left) / columns, WIDEST) : CELL;
    grid->row = 20;
    return longest(figure->x_label, figure->columns, grid->letters) * sin(SLOPE * M_PI / 180) + 32;
}

static double left_of(const struct grid *grid, double column)
{
    return grid->left + column * grid->column;
}

static double top_of(const struct grid *grid, double row)
{
    return TOP + row * grid->row;
}

static void add_cells(struct text *svg, const struct grid *grid, size_t row, size_t first, size_t end)
{
    double left = left_of(grid, (double)first), top = top_of(grid, (double)row);
    text_add(svg, "M%.5g %.5gH%.5gV%.5gH%.5gz", left, top, left_of(grid, (double)end) - grid->gap,
             top + grid->row - grid->gap, left);
}

/* The number of a cell's shade or colour, −1: it is empty. */
static int shade_of(const struct grid *grid, size_t row, size_t column)
{
    size_t i = row * grid->figure->columns + column;
    return isnan(grid->panel->value[i])         ? -1
           : grid->figure->kind == FIGURE_CELLS ? grid->panel->colour[i]
                                                : html_level(grid->panel->value[i], grid->range.low, grid->range.high);
}

/* One path per shade, and one rectangle for neighbours without a gap, keep the page small. */
static void draw_shade(struct text *svg, const struct grid *grid, int shade)
{
    bool cells = grid->figure->kind == FIGURE_CELLS, any = false;
    for (size_t row = 0; row < grid->figure->rows; row++)
        for (size_t first = 0, end; first < grid->figure->columns; first = end) {
            end = first + 1;
            if (shade_of(grid, row, first) != shade)
                continue;
            while (cells && end < grid->figure->columns && shade_of(grid, row, end) == shade)
                end++;
            if (!any) /* crisp edges: no seams between rectangles */
                text_add(svg,
                         cells ? "<path class=\"m c%d\" shape-rendering=\"crispEdges\" d=\""
                               : "<path class=\"h%d\" d=\"",
                         shade);
            any = true;
            add_cells(svg, grid, row, first, end);
        }
    text_add(svg, any ? "\"/>\n" : "");
}

/* A dot in the middle of a small cell, a frame around one with its value. */
static void draw_framed(struct text *svg, const struct grid *grid)
{
    const struct figure *figure = grid->figure;
    if (grid->panel->framed == NULL)
        return;
    text_add(svg, "<path class=\"%s\" d=\"", figure->printed ? "box" : "frame");
    for (size_t i = 0; i < figure->rows * figure->columns; i++) {
        size_t row = i / figure->columns, column = i % figure->columns;
        if (grid->panel->framed[i] && figure->printed)
            add_cells(svg, grid, row, column, column + 1);
        else if (grid->panel->framed[i])
            text_add(svg, "M%.4g %.4gh2v2h-2z", left_of(grid, (double)column + 0.5) - grid->gap / 2 - 1,
                     top_of(grid, (double)row + 0.5) - grid->gap / 2 - 1);
    }
    text_add(svg, "\"/>\n");
}

/* Narrow cells have whole numbers, or none. */
static void draw_values(struct text *svg, const struct grid *grid)
{
    const struct figure *figure = grid->figure;
    for (size_t i = 0; grid->column >= WITH_VALUES && i < figure->rows * figure->columns; i++) {
        size_t row = i / figure->columns, column = i % figure->columns;
        int shade = shade_of(grid, row, column);
        if (shade >= 0)
            draw_number(svg,
                        shade < MIDDLE    ? "tx low"
                        : shade == MIDDLE ? "tx middle"
                                          : "tx high",
                        left_of(grid, (double)column + 0.5), top_of(grid, (double)row + 0.5) + 3, grid->panel->value[i],
                        grid->column >= WITH_DECIMALS ? figure->decimals : 0);
    }
}

/* Labels that have room: every first, second, fifth, … */
static size_t stride_of(const struct grid *grid, size_t count, double pitch)
{
    static const size_t strides[] = {1, 2, 5, 10, 20, 50, 100};
    size_t i = 0;
    while (!grid->figure->printed && i + 1 < sizeof strides / sizeof *strides &&
           (double)strides[i] * pitch < TICK_EVERY && strides[i] < count)
        i++;
    return strides[i];
}

static void draw_names(struct text *svg, const struct grid *grid)
{
    const struct figure *figure = grid->figure;
    double bottom = top_of(grid, (double)figure->rows);
    for (size_t row = 0; row < figure->rows; row += stride_of(grid, figure->rows, grid->row))
        draw_text(svg, "ty", grid->left - 4, top_of(grid, (double)row + 0.5) + 3, figure->y_label[row], grid->letters);
    for (size_t column = 0; column < figure->columns; column += stride_of(grid, figure->columns, grid->column)) {
        double x = left_of(grid, (double)column + 0.5);
        if (figure->printed)
            text_add(svg, "<g transform=\"rotate(-%g %.4g %.4g)\">", SLOPE, x, bottom + 10);
        draw_text(svg, figure->printed ? "ty" : "tx", x, bottom + 12, figure->x_label[column], grid->letters);
        text_add(svg, figure->printed ? "</g>\n" : "");
    }
}

struct drawing_size draw_heat(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                              const struct figure_range *range, double width)
{
    bool cells = figure->kind == FIGURE_CELLS;
    struct grid grid = {.figure = figure, .panel = panel, .range = *range, .letters = NAME_MOST};
    double foot = lay_out(&grid, width), right = left_of(&grid, (double)figure->columns);
    struct drawing_size size = {right + (cells || figure->printed ? 0 : RIGHT),
                                top_of(&grid, (double)figure->rows) + foot};
    draw_begin(svg, panel, size.width, size.height);
    for (int shade = 0; shade < (cells ? REPORT_BEST : HTML_LEVELS); shade++)
        draw_shade(svg, &grid, shade);
    if (!cells) {
        draw_framed(svg, &grid);
        if (figure->printed)
            draw_values(svg, &grid);
        draw_names(svg, &grid);
        if (figure->x_title != NULL)
            draw_text(svg, "tx", (grid.left + right) / 2, size.height - 5, figure->x_title, SIZE_MAX);
    }
    draw_end(svg);
    return size;
}
