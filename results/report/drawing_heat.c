/* Cells in shades: many small ones, which show at a glance what a table could not, or some with their values in them. */
#include <math.h>

#include "results/report/drawing.h"
#include "results/report/html.h"

#define WIDTH 260.0 /* on the page */
#define CELL 42.0   /* with a value in it */
#define WIDEST 60.0
#define LEFT 26.0
#define TOP 20.0
#define RIGHT 8.0 /* half a label below the last column, which may be narrower */
#define GAP 1.0
#define TICK_EVERY 30.0 /* between the labels of an axis */
#define SLOPE 35.0      /* of the names below the columns */

enum { NAME_MOST = 40, MIDDLE = 5 /* the shade that takes dark words in either theme */ };

struct grid {
    double left, column, row, foot; /* foot: room below the cells */
    bool printed;
    int decimals; /* narrow cells have none */
};

static double longest(const char *const *label, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, draw_width(label[i], NAME_MOST));
    return most;
}

#define WITH_DECIMALS 34.0 /* the least widths of cells with "100.0" and "100" in them */
#define WITH_VALUES 17.0

static struct grid lay_out(const struct figure *figure, double width)
{
    double columns = (double)figure->columns;
    if (!figure->printed)
        return (struct grid){LEFT, ((width > 0 ? width : WIDTH) - LEFT - RIGHT) / columns, 8, 32, false, 0};
    double left = longest(figure->y_label, figure->rows) + 8;
    double column = width > 0 ? fmin((width - left) / columns, WIDEST) : CELL;
    return (struct grid){left,
                         column,
                         20,
                         longest(figure->x_label, figure->columns) * sin(SLOPE * M_PI / 180) + 32,
                         column >= WITH_VALUES,
                         column >= WITH_DECIMALS ? figure->decimals : 0};
}

static double middle(const struct grid *grid, size_t column)
{
    return grid->left + ((double)column + 0.5) * grid->column;
}

static void add_cell(struct text *svg, const struct grid *grid, size_t row, size_t column)
{
    double width = grid->column - GAP;
    text_add(svg, "M%.4g %.4gh%.3gv%.3gh%.3gz", grid->left + (double)column * grid->column,
             TOP + (double)row * grid->row, width, grid->row - GAP, -width);
}

/* One path per shade keeps the page small. */
static void draw_shade(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                       const struct figure_range *range, const struct grid *grid, int level)
{
    bool any = false;
    for (size_t i = 0; i < figure->rows * figure->columns; i++) {
        if (isnan(panel->value[i]) || html_level(panel->value[i], range->low, range->high) != level)
            continue;
        if (!any)
            text_add(svg, "<path class=\"h%d\" d=\"", level);
        any = true;
        add_cell(svg, grid, i / figure->columns, i % figure->columns);
    }
    text_add(svg, any ? "\"/>\n" : "");
}

/* A dot in the middle of a small cell, a frame around one with its value. */
static void draw_framed(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                        const struct grid *grid)
{
    if (panel->framed == NULL)
        return;
    text_add(svg, "<path class=\"%s\" d=\"", figure->printed ? "box" : "frame");
    for (size_t i = 0; i < figure->rows * figure->columns; i++) {
        size_t row = i / figure->columns, column = i % figure->columns;
        if (panel->framed[i] && figure->printed)
            add_cell(svg, grid, row, column);
        else if (panel->framed[i])
            text_add(svg, "M%.4g %.4gh2v2h-2z", middle(grid, column) - GAP / 2 - 1,
                     TOP + (double)row * grid->row + (grid->row - GAP) / 2 - 1);
    }
    text_add(svg, "\"/>\n");
}

static void draw_values(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                        const struct figure_range *range, const struct grid *grid)
{
    for (size_t i = 0; grid->printed && i < figure->rows * figure->columns; i++) {
        if (isnan(panel->value[i]))
            continue;
        size_t column = i % figure->columns, row = i / figure->columns;
        int level = html_level(panel->value[i], range->low, range->high);
        text_add(svg, "<text class=\"tx %s\" x=\"%.4g\" y=\"%.4g\">",
                 level < MIDDLE    ? "low"
                 : level == MIDDLE ? "middle"
                                   : "high",
                 middle(grid, column), TOP + ((double)row + 0.5) * grid->row + 3);
        html_number(svg, panel->value[i], grid->decimals);
        text_add(svg, "</text>\n");
    }
}

/* Labels that have room: every first, second, fifth, … */
static size_t stride_of(size_t count, double pitch)
{
    static const size_t strides[] = {1, 2, 5, 10, 20, 50, 100};
    size_t i = 0;
    while (i + 1 < sizeof strides / sizeof *strides && (double)strides[i] * pitch < TICK_EVERY && strides[i] < count)
        i++;
    return strides[i];
}

static void draw_names(struct text *svg, const struct figure *figure, const struct grid *grid)
{
    double bottom = TOP + (double)figure->rows * grid->row;
    size_t stride = figure->printed ? 1 : stride_of(figure->rows, grid->row);
    for (size_t row = 0; row < figure->rows; row += stride)
        draw_short_text(svg, "ty", grid->left - 4, TOP + ((double)row + 0.5) * grid->row + 3, figure->y_label[row],
                        NAME_MOST);
    stride = figure->printed ? 1 : stride_of(figure->columns, grid->column);
    for (size_t column = 0; column < figure->columns; column += stride) {
        if (figure->printed)
            text_add(svg, "<g transform=\"rotate(-%g %.4g %.4g)\">", SLOPE, middle(grid, column), bottom + 10);
        draw_short_text(svg, figure->printed ? "ty" : "tx", middle(grid, column), bottom + 12, figure->x_label[column],
                        NAME_MOST);
        text_add(svg, figure->printed ? "</g>\n" : "");
    }
}

struct drawing_size draw_heat(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                              const struct figure_range *range, double width)
{
    struct grid grid = lay_out(figure, width);
    double right = grid.left + (double)figure->columns * grid.column;
    struct drawing_size size = {right + (figure->printed ? 0 : RIGHT),
                                TOP + (double)figure->rows * grid.row + grid.foot};
    draw_begin(svg, panel, size.width, size.height);
    for (int level = 0; level < HTML_LEVELS; level++)
        draw_shade(svg, figure, panel, range, &grid, level);
    draw_framed(svg, figure, panel, &grid);
    draw_values(svg, figure, panel, range, &grid);
    draw_names(svg, figure, &grid);
    if (figure->x_title != NULL)
        draw_text(svg, "tx", (grid.left + right) / 2, size.height - 5, figure->x_title);
    draw_end(svg);
    return size;
}
