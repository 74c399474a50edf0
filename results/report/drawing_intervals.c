/* A mean and its interval per row, or a bar, the row's name above them so that it may be long. */
#include <math.h>
#include <stdint.h>

#include "results/report/figure.h"
#include "results/report/html.h"

#define LEFT 6.0
#define TOP 20.0
#define ROW 34.0
#define LINE 13.0 /* more, where a name is too long to stand beside the value */
#define LETTER 6.2
#define GAP 8.0   /* between name and value, on one line */
#define WIDE 1.15 /* of words without narrow letters, and of digits */

struct rows {
    struct text *svg;
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
static void add_value(struct text *text, const struct figure *figure, const struct figure_mark *mark)
{
    html_number(text, mark->value, figure->decimals);
    if (isnan(mark->low))
        return;
    text_add(text, " [");
    html_number(text, mark->low, figure->decimals);
    text_add(text, ", ");
    html_number(text, mark->high, figure->decimals);
    text_add(text, "]");
}

static bool fits_a_line(const struct rows *rows, const struct figure_mark *mark)
{
    struct text value = {0};
    add_value(&value, rows->figure, mark);
    double taken = draw_width(mark->name, SIZE_MAX) + draw_width(value.data, SIZE_MAX);
    text_free(&value);
    return WIDE * taken + GAP <= rows->right - LEFT;
}

static void draw_row(const struct rows *rows, const struct figure_mark *mark, double top)
{
    double y = top + rows->height - 10, low = place(rows, mark->low), high = place(rows, mark->high),
           zero = place(rows, 0), at = place(rows, mark->value);
    draw_text(rows->svg, "tl", LEFT, top + 13, mark->name, (size_t)((rows->right - LEFT) / LETTER));
    text_add(rows->svg, "<text class=\"ty\" x=\"%g\" y=\"%.4g\">", rows->right, y - 11);
    add_value(rows->svg, rows->figure, mark);
    text_add(rows->svg, "</text>\n");
    draw_line(rows->svg, "grid", LEFT, y, rows->right, y);
    if (rows->figure->zero && rows->range.low < 0 && rows->range.high > 0) /* below the words */
        draw_line(rows->svg, "mark", zero, y - 7, zero, y + 9);
    if (rows->figure->kind->bars && !isnan(mark->value)) {
        text_add(rows->svg, "<path class=\"m c%zu\" d=\"M%.5g %.5gH%.5gv8H%.5gz\">", mark->colour, zero, y - 4, at,
                 zero);
        draw_hover(rows->svg, mark->name, mark->value, rows->figure->decimals);
        return;
    }
    if (!isnan(mark->low))
        text_add(rows->svg, "<path class=\"line c%zu\" d=\"M%.5g %.5gH%.5gM%.5g %.5gv7M%.5g %.5gv7\"/>\n", mark->colour,
                 low, y, high, low, y - 3.5, high, y - 3.5);
    if (!isnan(mark->value))
        draw_mark(rows->svg, mark->colour, at, y, mark->name, mark->value, rows->figure->decimals);
}

void draw_intervals(struct drawing *drawing)
{
    const struct figure *figure = drawing->figure;
    struct rows rows = {drawing->svg, figure, drawing->range, drawing->width - LEFT, ROW};
    for (size_t p = 0; p < figure->panels; p++)
        for (size_t i = 0; i < figure->panel[p].marks; i++)
            if (!fits_a_line(&rows, &figure->panel[p].mark[i]))
                rows.height = ROW + LINE;
    for (size_t i = 0; i < drawing->panel->marks; i++)
        draw_row(&rows, &drawing->panel->mark[i], TOP + (double)i * rows.height);
    double ticks[DRAW_TICKS], bottom = TOP + (double)drawing->panel->marks * rows.height;
    draw_line(drawing->svg, "axis", LEFT, bottom, rows.right, bottom);
    for (size_t i = 0, count = draw_ticks(drawing->range, true, ticks); i < count; i++)
        draw_tick(drawing->svg, place(&rows, ticks[i]), bottom, ticks[i]);
    if (figure->x_title != NULL)
        draw_text(drawing->svg, "tx", drawing->width / 2, bottom + 30, figure->x_title, SIZE_MAX);
    drawing->height = bottom + (figure->x_title != NULL ? 36 : 22);
}
