#include "results/report/figure.h"

#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "results/report/html.h"

#define LETTER 6.2 /* the mean width of one */

/* The bytes of its first `most` characters. */
static size_t beginning(const char *string, size_t most, size_t *characters)
{
    size_t bytes = 0;
    for (*characters = 0; string[bytes] != 0 && *characters < most; bytes++)
        *characters += ((unsigned char)string[bytes + 1] & 0xc0) != 0x80;
    return bytes;
}

double draw_width(const char *string, size_t most)
{
    size_t characters;
    beginning(string, most, &characters);
    return LETTER * (double)characters;
}

void draw_text(struct text *svg, const char *class, double x, double y, const char *string, size_t most)
{
    size_t characters, bytes = beginning(string, most, &characters);
    char *begin = xstrndup(string, bytes);
    text_add(svg, "<text class=\"%s\" x=\"%.4g\" y=\"%.4g\">", class, x, y);
    if (string[bytes] != 0) {
        text_add(svg, "<title>");
        html_escape(svg, string);
        text_add(svg, "</title>");
    }
    html_escape(svg, begin);
    text_add(svg, "%s</text>\n", string[bytes] != 0 ? "…" : "");
    free(begin);
}

void draw_number(struct text *svg, const char *class, double x, double y, double value, int decimals)
{
    struct text number = {0};
    html_number(&number, value, decimals);
    draw_text(svg, class, x, y, number.data, SIZE_MAX);
    text_free(&number);
}

void draw_line(struct text *svg, const char *class, double x1, double y1, double x2, double y2)
{
    text_add(svg, "<path class=\"%s\" d=\"M%.4g %.4gL%.4g %.4g\"/>\n", class, x1, y1, x2, y2);
}

void draw_tick(struct text *svg, double x, double axis, double value)
{
    draw_line(svg, "tick", x, axis, x, axis + 3);
    draw_number(svg, "tx", x, axis + 14, value, DECIMALS_ALL);
}

/* Paths around the origin: circle, square, triangle, diamond, triangle upside down, cross. */
static const char *const shapes[REPORT_BEST] = {"m-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0z",
                                                "m-2.3-2.3h4.6v4.6h-4.6z",
                                                "m0-3.2l3 5.4h-6z",
                                                "m0-3.4l3.1 3.4l-3.1 3.4l-3.1-3.4z",
                                                "m0 3.2l3-5.4h-6z",
                                                "m-1-3h2v2h2v2h-2v2h-2v-2h-2v-2h2z"};

void draw_mark(struct text *svg, size_t colour, double x, double y, const char *label, double value, int decimals)
{
    text_add(svg, "<path class=\"m c%zu\" d=\"M%.4g %.4g%s\">", colour, x, y, shapes[colour]);
    draw_hover(svg, label, value, decimals);
}

void draw_hover(struct text *svg, const char *label, double value, int decimals)
{
    text_add(svg, "<title>");
    html_escape(svg, label);
    text_add(svg, ": ");
    html_number(svg, value, decimals);
    text_add(svg, "</title></path>\n");
}

void draw_widen(struct figure_range *range, double value)
{
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

size_t draw_ticks(struct figure_range range, bool fractions, double ticks[DRAW_TICKS])
{
    static const double steps[] = {1, 2, 5, 10};
    double rough = (range.high - range.low) / 6, unit = pow(10, floor(log10(rough))), step = 10 * unit;
    for (size_t i = sizeof steps / sizeof *steps; i-- > 0;)
        if (steps[i] * unit >= rough)
            step = steps[i] * unit;
    size_t seen = 0, count = 0;
    for (double at = ceil(range.low / step - 1e-9); at * step <= range.high + 1e-9 * step && seen++ < DRAW_TICKS; at++)
        if (fractions || at * step == rint(at * step))
            ticks[count++] = at * step + 0.0; /* no −0 */
    return count;
}
