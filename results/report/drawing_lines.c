/* Small line charts with bands. */
#include <math.h>

#include "results/report/figure.h"
#include "results/report/html.h"

#define LEFT 32.0
#define TOP 22.0
#define FOOT 34.0
#define ASPECT 0.5 /* of the area between the axes, at most HIGH high */
#define HIGH 160.0
#define TICK_APART 28.0 /* labels of the horizontal axis */

struct axes {
    struct text *svg;
    struct figure_range x, y;
    double right, bottom;
};

/* The range of the horizontal axis, which all panels share. */
static struct figure_range range_x(const struct figure *figure)
{
    struct figure_range range = {INFINITY, -INFINITY};
    for (size_t p = 0; p < figure->panels; p++)
        for (size_t i = 0; i < figure->panel[p].marks; i++)
            draw_widen(&range, figure->panel[p].mark[i].x);
    return range.high > range.low ? range : (struct figure_range){0, 1};
}

static double place_x(const struct axes *axes, double x)
{
    return LEFT + (x - axes->x.low) / (axes->x.high - axes->x.low) * (axes->right - LEFT);
}

static double place_y(const struct axes *axes, double y)
{
    return axes->bottom - (y - axes->y.low) / (axes->y.high - axes->y.low) * (axes->bottom - TOP);
}

static void draw_axes(const struct figure *figure, const struct axes *axes)
{
    double ticks[DRAW_TICKS];
    size_t count = draw_ticks(axes->y, true, ticks);
    for (size_t i = 0; i < count; i++) {
        draw_line(axes->svg, "grid", LEFT, place_y(axes, ticks[i]), axes->right, place_y(axes, ticks[i]));
        draw_number(axes->svg, "ty", LEFT - 5, place_y(axes, ticks[i]) + 3.5, ticks[i], DECIMALS_ALL);
    }
    count = draw_ticks(axes->x, text_has_word(figure->words, "fractions"), ticks);
    long long stride = (long long)ceil((double)count * TICK_APART / (axes->right - LEFT));
    double step = count > 1 ? ticks[1] - ticks[0] : 1;
    for (size_t i = 0; i < count; i++)
        if (stride <= 1 || llround(ticks[i] / step) % stride == 0) /* 10, 20: rounder than 5, 15 */
            draw_tick(axes->svg, place_x(axes, ticks[i]), axes->bottom, ticks[i]);
    draw_line(axes->svg, "axis", LEFT, axes->bottom, axes->right, axes->bottom);
    if (figure->x_title != NULL)
        draw_text(axes->svg, "tx", (LEFT + axes->right) / 2, axes->bottom + 29, figure->x_title, SIZE_MAX);
}

static void add_place(const struct axes *axes, char step, double x, double y)
{
    text_add(axes->svg, "%c%.5g %.5g", step, place_x(axes, x), place_y(axes, fmin(fmax(y, axes->y.low), axes->y.high)));
}

/* A band per stretch without gaps: along its upper edge and back along the lower one. */
static void draw_band(const struct axes *axes, const struct figure_mark *mark, size_t marks)
{
    for (size_t first = 0, end; first < marks; first = end + (end == first)) {
        for (end = first; end < marks && !isnan(mark[end].low) && !isnan(mark[end].high);)
            end++;
        if (end - first < 2)
            continue;
        text_add(axes->svg, "<path class=\"band c%zu\" d=\"", mark->colour);
        for (size_t i = first; i < end; i++)
            add_place(axes, i == first ? 'M' : 'L', mark[i].x, mark[i].high);
        for (size_t i = end; i-- > first;)
            add_place(axes, 'L', mark[i].x, mark[i].low);
        text_add(axes->svg, "z\"/>\n");
    }
}

static void draw_series(struct drawing *drawing, const struct axes *axes, const struct figure_mark *mark, size_t marks)
{
    bool points = text_has_word(drawing->figure->words, "points");
    text_add(axes->svg, "<path class=\"line c%zu\" d=\"", mark->colour);
    for (size_t i = 0; i < marks; i++)
        if (!isnan(mark[i].value))
            add_place(axes, i == 0 || isnan(mark[i - 1].value) ? 'M' : 'L', mark[i].x, mark[i].value);
    text_add(axes->svg, "\"/>\n");
    for (size_t i = 0; i < marks; i++)
        if (points && !isnan(mark[i].value))
            draw_mark(axes->svg, mark->colour, place_x(axes, mark[i].x), place_y(axes, mark[i].value), mark->name,
                      mark[i].value, drawing->figure->decimals);
}

void draw_lines(struct drawing *drawing)
{
    struct axes axes = {drawing->svg, range_x(drawing->figure), drawing->range, drawing->width - 8,
                        TOP + fmin(ASPECT * drawing->width, HIGH)};
    const struct figure_panel *panel = drawing->panel;
    draw_axes(drawing->figure, &axes);
    if (!isnan(panel->line))
        draw_line(axes.svg, "mark", place_x(&axes, panel->line), TOP, place_x(&axes, panel->line), axes.bottom);
    for (int lines = 0; lines < 2; lines++) /* above all bands */
        for (size_t first = 0, end; first < panel->marks; first = end) {
            for (end = first + 1; end < panel->marks && !panel->mark[end].begins;)
                end++;
            if (lines)
                draw_series(drawing, &axes, &panel->mark[first], end - first);
            else
                draw_band(&axes, &panel->mark[first], end - first);
        }
    drawing->height = axes.bottom + FOOT;
}
