/* Cells in columns and rows. In shades: many small ones, which show at a glance what a table could not, or some with their values
 * in them. In colours: without gaps, as the patches of an image lie. */
#include <math.h>

#include "results/report/figure.h"
#include "results/report/html.h"

#define CELL 42.0 /* with a value in it */
#define WIDEST 60.0
#define LEFT 26.0
#define TOP 20.0
#define RIGHT 8.0          /* half a label beside the last column, which may be narrower */
#define TICK_EVERY 30.0    /* between the labels of columns */
#define LINE_EVERY 11.0    /* between those of rows */
#define SLOPE 35.0         /* of the names below the columns */
#define WITH_DECIMALS 34.0 /* the least widths of cells with "100.0" and "100" in them */
#define WITH_VALUES 17.0
#define NAMES 0.45 /* of the width that the names of rows may take */

enum { NAME_MOST = 40, FEW_ROWS = 20, MIDDLE = 5 /* the shade that takes dark words in either theme */ };

static double left_of(const struct drawing *grid, double column)
{
    return grid->left + column * grid->column;
}

static double top_of(const struct drawing *grid, double row)
{
    return TOP + row * grid->row;
}

static void add_cells(const struct drawing *grid, const struct figure_mark *first, const struct figure_mark *last)
{
    double left = left_of(grid, first->x), top = top_of(grid, first->y);
    text_add(grid->svg, "M%.5g %.5gH%.5gV%.5gH%.5gz", left, top, left_of(grid, last->x + 1) - grid->gap,
             top + grid->row - grid->gap, left);
}

/* The number of a cell's shade or colour, −1: it is empty. */
static int shade_of(const struct drawing *grid, const struct figure_mark *mark)
{
    return isnan(mark->value)           ? -1
           : grid->figure->kind->shades ? html_level(mark->value, grid->range.low, grid->range.high)
                                        : (int)mark->colour;
}

/* A path per shade, and one rectangle for neighbours without a gap, keep the page small. */
static void draw_shades(const struct drawing *grid)
{
    const struct figure_mark *mark = grid->panel->mark;
    bool shades = grid->figure->kind->shades;
    for (int shade = 0; shade < (shades ? (int)HTML_LEVELS : REPORT_BEST); shade++) {
        bool any = false;
        for (size_t first = 0, last; first < grid->panel->marks; first = last + 1) {
            last = first;
            if (shade_of(grid, &mark[first]) != shade)
                continue;
            while (grid->gap == 0 && last + 1 < grid->panel->marks && mark[last + 1].y == mark[last].y &&
                   mark[last + 1].x == mark[last].x + 1 && shade_of(grid, &mark[last + 1]) == shade)
                last++;
            if (!any)
                text_add(grid->svg, "<path class=\"%s%d\"%s d=\"", shades ? "h" : "m c", shade,
                         shades ? "" : " shape-rendering=\"crispEdges\""); /* no seams between rectangles */
            any = true;
            add_cells(grid, &mark[first], &mark[last]);
        }
        text_add(grid->svg, any ? "\"/>\n" : "");
    }
}

/* A dot in the middle of a small cell, a frame around one with its value. */
static void draw_framed(const struct drawing *grid)
{
    bool printed = grid->figure->printed, any = false;
    for (size_t i = 0; i < grid->panel->marks; i++) {
        const struct figure_mark *mark = &grid->panel->mark[i];
        if (!mark->framed)
            continue;
        text_add(grid->svg, any ? "" : printed ? "<path class=\"box\" d=\"" : "<path class=\"frame\" d=\"");
        any = true;
        if (printed)
            add_cells(grid, mark, mark);
        else
            text_add(grid->svg, "M%.4g %.4gh2v2h-2z", left_of(grid, mark->x + 0.5) - grid->gap / 2 - 1,
                     top_of(grid, mark->y + 0.5) - grid->gap / 2 - 1);
    }
    text_add(grid->svg, any ? "\"/>\n" : "");
}

/* Narrow cells have whole numbers, or none. */
static void draw_values(const struct drawing *grid)
{
    for (size_t i = 0; grid->column >= WITH_VALUES && i < grid->panel->marks; i++) {
        const struct figure_mark *mark = &grid->panel->mark[i];
        int shade = shade_of(grid, mark);
        const char *class = shade < MIDDLE ? "tx low" : shade == MIDDLE ? "tx middle" : "tx high";
        if (shade >= 0)
            draw_number(grid->svg, class, left_of(grid, mark->x + 0.5), top_of(grid, mark->y + 0.5) + 3, mark->value,
                        grid->column >= WITH_DECIMALS ? grid->figure->decimals : 0);
    }
}

/* Labels that have room: every first, second, fifth, … */
static size_t stride_of(const struct drawing *grid, size_t count, double pitch, double apart)
{
    static const size_t strides[] = {1, 2, 5, 10, 20, 50, 100};
    size_t i = 0;
    while (!grid->figure->printed && i + 1 < sizeof strides / sizeof *strides && (double)strides[i] * pitch < apart &&
           strides[i] < count)
        i++;
    return strides[i];
}

static void draw_names(const struct drawing *grid)
{
    const struct figure_names *rows = &grid->figure->row, *columns = &grid->figure->column;
    bool printed = grid->figure->printed;
    double bottom = top_of(grid, (double)rows->count);
    for (size_t row = 0; row < rows->count; row += stride_of(grid, rows->count, grid->row, LINE_EVERY))
        draw_text(grid->svg, "ty", grid->left - 4, top_of(grid, (double)row + 0.5) + 3, rows->name[row], grid->letters);
    for (size_t i = 0; i < columns->count; i += stride_of(grid, columns->count, grid->column, TICK_EVERY)) {
        double x = left_of(grid, (double)i + 0.5);
        if (printed)
            text_add(grid->svg, "<g transform=\"rotate(-%g %.4g %.4g)\">", SLOPE, x, bottom + 10);
        draw_text(grid->svg, printed ? "ty" : "tx", x, bottom + 12, columns->name[i], grid->letters);
        text_add(grid->svg, printed ? "</g>\n" : "");
    }
}

static double longest(const struct figure_names *names, size_t letters)
{
    double most = 0;
    for (size_t i = 0; i < names->count; i++)
        most = fmax(most, draw_width(names->name[i], letters));
    return most;
}

/* Sets how the cells lie and returns the room below them. */
static double lay_out(struct drawing *grid)
{
    const struct figure *figure = grid->figure;
    double columns = (double)figure->column.count;
    if (!figure->kind->shades) {
        grid->column = grid->row = grid->width / columns;
        return 0;
    }
    grid->gap = 1;
    if (!figure->printed) {
        grid->letters = (size_t)(NAMES * grid->width / draw_width("m", 1));
        grid->left = fmax(LEFT, longest(&figure->row, grid->letters) + 8);
        grid->column = (grid->width - grid->left - RIGHT) / columns;
        grid->row = figure->row.count <= FEW_ROWS ? 12 : 8; /* a few all have their names */
        return 32;
    }
    if (grid->file)
        grid->letters = (size_t)fmin(NAME_MOST, NAMES * grid->width / draw_width("m", 1));
    grid->left = longest(&figure->row, grid->letters) + 8;
    grid->column = grid->file ? fmin((grid->width - grid->left) / columns, WIDEST) : CELL;
    grid->row = 20;
    return longest(&figure->column, grid->letters) * sin(SLOPE * M_PI / 180) + 32;
}

void draw_grid(struct drawing *grid)
{
    const struct figure *figure = grid->figure;
    grid->letters = NAME_MOST;
    double foot = lay_out(grid), right = left_of(grid, (double)figure->column.count);
    grid->height = top_of(grid, (double)figure->row.count) + foot;
    draw_shades(grid);
    draw_framed(grid);
    if (!figure->kind->shades)
        return;
    grid->width = right + (figure->printed ? 0 : RIGHT);
    if (figure->printed)
        draw_values(grid);
    draw_names(grid);
    if (figure->part->says[ON_X] != NULL)
        draw_text(grid->svg, "tx", (grid->left + right) / 2, grid->height - 5, figure->part->says[ON_X], SIZE_MAX);
}
