/* Small line charts with bands. */
#include <math.h>

#include "results/report/drawing.h"
#include "results/report/html.h"

#define WIDTH 260.0 /* on the page */
#define LEFT 32.0
#define TOP 22.0
#define FOOT 34.0
#define ASPECT 0.5 /* of the area between the axes, at most HIGH high */
#define HIGH 160.0
#define TICK_APART 28.0 /* labels of the horizontal axis */

struct axes {
    struct figure_range x, y;
    double right, bottom;
};

static double place_x(const struct axes *axes, double x)
{
    return LEFT + (x - axes->x.low) / (axes->x.high - axes->x.low) * (axes->right - LEFT);
}

static double place_y(const struct axes *axes, double y)
{
    return axes->bottom - (y - axes->y.low) / (axes->y.high - axes->y.low) * (axes->bottom - TOP);
}

static void draw_axes(struct text *svg, const struct figure *figure, const struct axes *axes)
{
    double ticks[FIGURE_TICKS];
    size_t count = figure_ticks(axes->y.low, axes->y.high, ticks);
    for (size_t i = 0; i < count; i++) {
        draw_line(svg, "grid", LEFT, place_y(axes, ticks[i]), axes->right, place_y(axes, ticks[i]));
        draw_number(svg, "ty", LEFT - 5, place_y(axes, ticks[i]) + 3.5, ticks[i], DECIMALS_ALL);
    }
    count = (figure->fractions ? figure_ticks : figure_whole_ticks)(axes->x.low, axes->x.high, ticks);
    size_t stride = (size_t)ceil((double)count * TICK_APART / (axes->right - LEFT));
    double step = count > 1 ? ticks[1] - ticks[0] : 1;
    for (size_t i = 0; i < count; i++) {
        if (stride > 1 && llround(ticks[i] / step) % (long long)stride != 0) /* 10, 20: rounder than 5, 15 */
            continue;
        draw_line(svg, "tick", place_x(axes, ticks[i]), axes->bottom, place_x(axes, ticks[i]), axes->bottom + 3);
        draw_number(svg, "tx", place_x(axes, ticks[i]), axes->bottom + 14, ticks[i], DECIMALS_ALL);
    }
    draw_line(svg, "axis", LEFT, axes->bottom, axes->right, axes->bottom);
    if (figure->x_title != NULL)
        draw_text(svg, "tx", (LEFT + axes->right) / 2, axes->bottom + 29, figure->x_title, SIZE_MAX);
}

static void add_place(struct text *svg, const struct axes *axes, char step, double x, double y)
{
    text_add(svg, "%c%.5g %.5g", step, place_x(axes, x), place_y(axes, fmin(fmax(y, axes->y.low), axes->y.high)));
}

/* A band per stretch without gaps: along its upper edge and back along the lower one. */
static void draw_band(struct text *svg, const struct figure_series *series, const struct axes *axes)
{
    if (series->low == NULL || series->high == NULL)
        return;
    for (size_t first = 0, end; first < series->points; first = end) {
        for (end = first; end < series->points && !isnan(series->low[end]) && !isnan(series->high[end]);)
            end++;
        if (end - first > 1) {
            text_add(svg, "<path class=\"band c%zu\" d=\"", series->colour);
            for (size_t i = first; i < end; i++)
                add_place(svg, axes, i == first ? 'M' : 'L', series->x[i], series->high[i]);
            for (size_t i = end; i-- > first;)
                add_place(svg, axes, 'L', series->x[i], series->low[i]);
            text_add(svg, "z\"/>\n");
        }
        end += end == first;
    }
}

static void draw_series(struct text *svg, const struct figure *figure, const struct figure_series *series,
                        const struct axes *axes)
{
    text_add(svg, "<path class=\"line c%zu\" d=\"", series->colour);
    bool pen = false;
    for (size_t i = 0; i < series->points; i++) {
        if (!isnan(series->y[i]))
            add_place(svg, axes, pen ? 'L' : 'M', series->x[i], series->y[i]);
        pen = !isnan(series->y[i]);
    }
    text_add(svg, "\"/>\n");
    for (size_t i = 0; figure->points && i < series->points; i++)
        if (!isnan(series->y[i]))
            draw_mark(svg, series->colour, place_x(axes, series->x[i]), place_y(axes, series->y[i]),
                      figure->legend_count > series->colour ? figure->legend[series->colour] : "", series->y[i],
                      figure->decimals);
}

struct drawing_size draw_lines(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                               const struct figure_range *range, double width)
{
    width = width > 0 ? width : WIDTH;
    struct axes axes = {figure_range_x(figure), *range, width - 8, TOP + fmin(ASPECT * width, HIGH)};
    struct drawing_size size = {width, axes.bottom + FOOT};
    draw_begin(svg, panel, size.width, size.height);
    draw_axes(svg, figure, &axes);
    if (!isnan(panel->mark))
        draw_line(svg, "mark", place_x(&axes, panel->mark), TOP, place_x(&axes, panel->mark), axes.bottom);
    for (size_t i = 0; i < panel->series_count; i++)
        draw_band(svg, &panel->series[i], &axes);
    for (size_t i = 0; i < panel->series_count; i++)
        draw_series(svg, figure, &panel->series[i], &axes);
    draw_end(svg);
    return size;
}
