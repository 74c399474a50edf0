/* A mean and its interval per row, the row's name above them so that it may be long. */
#include <math.h>
#include <stdint.h>

#include "results/report/drawing.h"
#include "results/report/html.h"

#define WIDTH 300.0 /* on the page */
#define LEFT 6.0
#define TOP 20.0
#define ROW 34.0
#define LINE 13.0 /* more, where a name is too long to stand beside the value */
#define LETTER 6.2
#define GAP 8.0   /* between name and value, on one line */
#define WIDE 1.15 /* of words without narrow letters, and of digits */

struct rows {
    const struct figure *figure;
    struct figure_range range;
    double right, height;
};

static double place(const struct rows *rows, double value)
{
    double share = (value - rows->range.low) / (rows->range.high - rows->range.low);
    return LEFT + fmin(fmax(share, 0), 1) * (rows->right - LEFT);
}

/* "1.2 [0.9, 1.5]" */
static void add_value(struct text *text, const struct figure *figure, const struct figure_interval *interval)
{
    html_number(text, interval->mean, figure->decimals);
    if (isnan(interval->low))
        return;
    text_add(text, " [");
    html_number(text, interval->low, figure->decimals);
    text_add(text, ", ");
    html_number(text, interval->high, figure->decimals);
    text_add(text, "]");
}

static bool fits_a_line(const struct rows *rows, const struct figure_interval *interval)
{
    struct text value = {0};
    add_value(&value, rows->figure, interval);
    double taken = draw_width(interval->label, SIZE_MAX) + draw_width(value.failed ? "" : value.data, SIZE_MAX);
    text_free(&value);
    return WIDE * taken + GAP <= rows->right - LEFT;
}

static struct rows lay_out(const struct figure *figure, const struct figure_range *range, double width)
{
    struct rows rows = {.figure = figure, .range = *range, .right = width - LEFT, .height = ROW};
    for (size_t p = 0; p < figure->panels; p++)
        for (size_t i = 0; i < figure->panel[p].intervals; i++)
            if (!fits_a_line(&rows, &figure->panel[p].interval[i]))
                rows.height = ROW + LINE;
    return rows;
}

static void draw_row(struct text *svg, const struct rows *rows, const struct figure_interval *interval, double top)
{
    double y = top + rows->height - 10, low = place(rows, interval->low), high = place(rows, interval->high);
    draw_text(svg, "tl", LEFT, top + 13, interval->label, (size_t)((rows->right - LEFT) / LETTER));
    text_add(svg, "<text class=\"ty\" x=\"%g\" y=\"%.4g\">", rows->right, y - 11);
    add_value(svg, rows->figure, interval);
    text_add(svg, "</text>\n");
    draw_line(svg, "grid", LEFT, y, rows->right, y);
    if (rows->figure->zero && rows->range.low < 0 && rows->range.high > 0) /* below the words */
        draw_line(svg, "mark", place(rows, 0), y - 7, place(rows, 0), y + 9);
    if (!isnan(interval->low))
        text_add(svg, "<path class=\"line c%zu\" d=\"M%.5g %.5gH%.5gM%.5g %.5gv7M%.5g %.5gv7\"/>\n", interval->colour,
                 low, y, high, low, y - 3.5, high, y - 3.5);
    if (!isnan(interval->mean))
        draw_mark(svg, interval->colour, place(rows, interval->mean), y, interval->label, interval->mean,
                  rows->figure->decimals);
}

struct drawing_size draw_intervals(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                                   const struct figure_range *range, double width)
{
    width = width > 0 ? width : WIDTH;
    struct rows rows = lay_out(figure, range, width);
    double ticks[FIGURE_TICKS], bottom = TOP + (double)panel->intervals * rows.height,
                                height = bottom + (figure->x_title != NULL ? 36 : 22);
    size_t count = figure_ticks(range->low, range->high, ticks);
    draw_begin(svg, panel, width, height);
    for (size_t i = 0; i < panel->intervals; i++)
        draw_row(svg, &rows, &panel->interval[i], TOP + (double)i * rows.height);
    draw_line(svg, "axis", LEFT, bottom, rows.right, bottom);
    for (size_t i = 0; i < count; i++) {
        draw_line(svg, "tick", place(&rows, ticks[i]), bottom, place(&rows, ticks[i]), bottom + 3);
        draw_number(svg, "tx", place(&rows, ticks[i]), bottom + 14, ticks[i], DECIMALS_ALL);
    }
    if (figure->x_title != NULL)
        draw_text(svg, "tx", width / 2, bottom + 30, figure->x_title, SIZE_MAX);
    draw_end(svg);
    return (struct drawing_size){width, height};
}
