/* A mean and its interval per row, the row's name above them so that it may be long. */
#include <math.h>

#include "results/report/drawing.h"
#include "results/report/html.h"

#define WIDTH 300.0
#define LEFT 6.0
#define RIGHT 294.0
#define TOP 20.0
#define ROW 34.0

enum { NAME_MOST = 30 };

static double place(const struct figure_range *range, double value)
{
    double share = (value - range->low) / (range->high - range->low);
    return LEFT + fmin(fmax(share, 0), 1) * (RIGHT - LEFT);
}

static void draw_value(struct text *svg, const struct figure *figure, const struct figure_interval *interval, double y)
{
    text_add(svg, "<text class=\"ty\" x=\"%g\" y=\"%.4g\">", RIGHT, y);
    html_number(svg, interval->mean, figure->decimals);
    if (!isnan(interval->low)) {
        text_add(svg, " [");
        html_number(svg, interval->low, figure->decimals);
        text_add(svg, ", ");
        html_number(svg, interval->high, figure->decimals);
        text_add(svg, "]");
    }
    text_add(svg, "</text>\n");
}

static void draw_row(struct text *svg, const struct figure *figure, const struct figure_interval *interval,
                     const struct figure_range *range, double top)
{
    double y = top + 24;
    draw_short_text(svg, "tl", LEFT, top + 13, interval->label, NAME_MOST);
    draw_value(svg, figure, interval, top + 13);
    draw_line(svg, "grid", LEFT, y, RIGHT, y);
    if (figure->zero && range->low < 0 && range->high > 0) /* below the words */
        draw_line(svg, "mark", place(range, 0), y - 7, place(range, 0), y + 9);
    if (isnan(interval->mean))
        return;
    if (!isnan(interval->low)) {
        text_add(svg, "<path class=\"line c%zu\" d=\"M%.5g %.5gH%.5g\"/>\n", interval->colour,
                 place(range, interval->low), y, place(range, interval->high));
        text_add(svg, "<path class=\"line c%zu\" d=\"M%.5g %.5gv7M%.5g %.5gv7\"/>\n", interval->colour,
                 place(range, interval->low), y - 3.5, place(range, interval->high), y - 3.5);
    }
    draw_mark(svg, interval->colour, place(range, interval->mean), y, interval->label, interval->mean,
              figure->decimals);
}

struct drawing_size draw_intervals(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                                   const struct figure_range *range)
{
    double ticks[FIGURE_TICKS], bottom = TOP + (double)panel->intervals * ROW,
                                height = bottom + (figure->x_title != NULL ? 36 : 22);
    size_t count = figure_ticks(range->low, range->high, ticks);
    draw_begin(svg, panel, WIDTH, height);
    for (size_t i = 0; i < panel->intervals; i++)
        draw_row(svg, figure, &panel->interval[i], range, TOP + (double)i * ROW);
    draw_line(svg, "axis", LEFT, bottom, RIGHT, bottom);
    for (size_t i = 0; i < count; i++) {
        draw_line(svg, "tick", place(range, ticks[i]), bottom, place(range, ticks[i]), bottom + 3);
        draw_tick(svg, "tx", place(range, ticks[i]), bottom + 14, ticks[i]);
    }
    if (figure->x_title != NULL)
        draw_text(svg, "tx", WIDTH / 2, bottom + 30, figure->x_title);
    draw_end(svg);
    return (struct drawing_size){WIDTH, height};
}
