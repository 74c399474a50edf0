/* Many small cells: what a table of numbers could not show at a glance. */
#include <math.h>

#include "results/report/drawing.h"
#include "results/report/html.h"

#define WIDTH 260.0
#define LEFT 26.0
#define TOP 20.0
#define ROW 8.0
#define GAP 1.0
#define TICK_EVERY 30.0 /* between the labels of an axis */

static double column_width(const struct figure *figure)
{
    return (WIDTH - LEFT) / (double)figure->columns;
}

static void add_cell(struct text *svg, const struct figure *figure, size_t row, size_t column)
{
    double width = column_width(figure) - GAP;
    text_add(svg, "M%.4g %.4gh%.3gv%.3gh%.3gz", LEFT + (double)column * column_width(figure), TOP + (double)row * ROW,
             width, ROW - GAP, -width);
}

/* One path per shade keeps the page small. */
static void draw_shade(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                       const struct figure_range *range, int level)
{
    bool any = false;
    for (size_t i = 0; i < figure->rows * figure->columns; i++) {
        if (isnan(panel->value[i]) || html_level(panel->value[i], range->low, range->high) != level)
            continue;
        if (!any)
            text_add(svg, "<path class=\"h%d\" d=\"", level);
        any = true;
        add_cell(svg, figure, i / figure->columns, i % figure->columns);
    }
    text_add(svg, any ? "\"/>\n" : "");
}

/* A dot in the middle. */
static void add_dot(struct text *svg, const struct figure *figure, size_t row, size_t column)
{
    text_add(svg, "M%.4g %.4gh2v2h-2z", LEFT + ((double)column + 0.5) * column_width(figure) - GAP / 2 - 1,
             TOP + (double)row * ROW + (ROW - GAP) / 2 - 1);
}

static void draw_dots(struct text *svg, const struct figure *figure, const struct figure_panel *panel)
{
    if (panel->framed == NULL)
        return;
    text_add(svg, "<path class=\"frame\" d=\"");
    for (size_t i = 0; i < figure->rows * figure->columns; i++)
        if (panel->framed[i])
            add_dot(svg, figure, i / figure->columns, i % figure->columns);
    text_add(svg, "\"/>\n");
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

void draw_heat(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
               const struct figure_range *range)
{
    double bottom = TOP + (double)figure->rows * ROW, width = column_width(figure);
    draw_begin(svg, panel, WIDTH, bottom + 32);
    for (int level = 0; level < HTML_LEVELS; level++)
        draw_shade(svg, figure, panel, range, level);
    draw_dots(svg, figure, panel);
    for (size_t row = 0; row < figure->rows; row += stride_of(figure->rows, ROW))
        draw_text(svg, "ty", LEFT - 4, TOP + (double)row * ROW + 7, figure->y_label[row]);
    for (size_t column = 0; column < figure->columns; column += stride_of(figure->columns, width))
        draw_text(svg, "tx", LEFT + ((double)column + 0.5) * width, bottom + 12, figure->x_label[column]);
    if (figure->x_title != NULL)
        draw_text(svg, "tx", (LEFT + WIDTH) / 2, bottom + 27, figure->x_title);
    draw_end(svg);
}
