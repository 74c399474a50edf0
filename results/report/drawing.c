/* Panels with a horizontal axis: lines with bands, and intervals or bars in rows; and what all drawings are made of. */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "results/report/figure.h"
#include "results/report/html.h"

#define LETTER 6.2 /* the mean width of one */
#define TOP 22.0
#define ROW 47.0        /* of an interval, its name and its value */
#define TICK_APART 28.0 /* labels of the horizontal axis */
#define NEAR 1.5        /* between curves that hide one another */

enum { TICKS = 8 };

/* --- Words and marks --- */

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

/* What is too long is cut in the middle, since labels of configurations often differ at the end. */
void draw_text(struct text *svg, const char *class, double x, double y, const char *string, size_t most)
{
    size_t characters;
    beginning(string, SIZE_MAX, &characters);
    bool cut = characters > most;
    size_t bytes = beginning(string, cut ? most - most / 2 : most, &(size_t){0});
    OWNED char *begin = xstrndup(string, bytes);
    text_add(svg, "<text class=\"%s\" x=\"%.4g\" y=\"%.4g\">", class, x, y);
    if (cut)
        html_element(svg, "<title>", string, "</title>");
    html_element(svg, "", begin, cut ? "…" : "");
    html_element(svg, "", string + beginning(string, cut ? characters - most / 2 : characters, &(size_t){0}),
                 "</text>\n");
}

void draw_number(struct text *svg, const char *class, double x, double y, double value, int decimals)
{
    text_add(svg, "<text class=\"%s\" x=\"%.4g\" y=\"%.4g\">", class, x, y);
    html_number(svg, value, decimals);
    text_add(svg, "</text>\n");
}

static void draw_line(struct text *svg, const char *class, double x1, double y1, double x2, double y2)
{
    text_add(svg, "<path class=\"%s\" d=\"M%.4g %.4gL%.4g %.4g\"/>\n", class, x1, y1, x2, y2);
}

/* What shows on hover unless it is NAN, and the end of the path. */
static void draw_hover(struct text *svg, const char *label, double value, int decimals)
{
    if (!isnan(value)) {
        html_element(svg, "<title>", label, ": ");
        html_number(svg, value, decimals);
        text_add(svg, "</title>");
    }
    text_add(svg, "</path>\n");
}

void draw_mark(struct text *svg, size_t colour, double x, double y, const char *label, double value, int decimals)
{
    /* Paths around the origin: circle, square, triangle, diamond, triangle upside down, cross. */
    static const char *const shapes[REPORT_BEST] = {"m-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0z",
                                                    "m-2.3-2.3h4.6v4.6h-4.6z",
                                                    "m0-3.2l3 5.4h-6z",
                                                    "m0-3.4l3.1 3.4l-3.1 3.4l-3.1-3.4z",
                                                    "m0 3.2l3-5.4h-6z",
                                                    "m-1-3h2v2h2v2h-2v2h-2v-2h-2v-2h2z"};
    text_add(svg, "<path class=\"m c%zu\" d=\"M%.4g %.4g%s\">", colour, x, y, shapes[colour]);
    draw_hover(svg, label, value, decimals);
}

/* --- Axes --- */

struct axis {
    struct figure_range range;
    double from, to; /* where its ends lie */
};

static double place(struct axis axis, double value)
{
    double share = (value - axis.range.low) / (axis.range.high - axis.range.low);
    return axis.from + fmin(fmax(share, 0), 1) * (axis.to - axis.from);
}

/* Round numbers within the range, a handful, or whole ones for what counts tasks or iterations; returns how many. */
static size_t find_ticks(struct figure_range range, bool fractions, double ticks[TICKS])
{
    static const double steps[] = {1, 2, 5, 10};
    double rough = (range.high - range.low) / 6, unit = pow(10, floor(log10(rough))), step = 10 * unit;
    for (size_t i = sizeof steps / sizeof *steps; i-- > 0;)
        if (steps[i] * unit >= rough)
            step = steps[i] * unit;
    size_t seen = 0, count = 0;
    for (double at = ceil(range.low / step - 1e-9); at * step <= range.high + 1e-9 * step && seen++ < TICKS; at++)
        if (fractions || at * step == rint(at * step))
            ticks[count++] = at * step + 0.0; /* no −0 */
    return count;
}

/* The horizontal axis at `y`, with its name `below` it. */
static void draw_axis(const struct drawing *drawing, struct axis axis, double y, bool fractions, double below)
{
    double ticks[TICKS];
    size_t count = find_ticks(axis.range, fractions, ticks);
    long long stride = (long long)ceil((double)count * TICK_APART / (axis.to - axis.from));
    double step = count > 1 ? ticks[1] - ticks[0] : 1;
    const char *title = drawing->figure->part->says[ON_X];
    for (size_t i = 0; i < count; i++)
        if (stride <= 1 || llround(ticks[i] / step) % stride == 0) { /* 10, 20: rounder than 5, 15 */
            draw_line(drawing->svg, "tick", place(axis, ticks[i]), y, place(axis, ticks[i]), y + 3);
            draw_number(drawing->svg, "tx", place(axis, ticks[i]), y + 14, ticks[i], DECIMALS_ALL);
        }
    draw_line(drawing->svg, "axis", axis.from, y, axis.to, y);
    if (title != NULL)
        draw_text(drawing->svg, "tx", (axis.from + axis.to) / 2, y + below, title, SIZE_MAX);
}

/* --- Lines --- */

/* The horizontal axis, which all panels share. */
static struct figure_range range_x(const struct figure *figure)
{
    struct figure_range range = {INFINITY, -INFINITY};
    for (size_t p = 0; p < figure->panels; p++)
        for (size_t i = 0; i < figure->panel[p].marks; i++) {
            range.low = fmin(range.low, figure->panel[p].mark[i].x);
            range.high = fmax(range.high, figure->panel[p].mark[i].x);
        }
    return range.high > range.low ? range : (struct figure_range){0, 1};
}

static void add_place(struct text *svg, char step, double x, double y)
{
    text_add(svg, "%c%.5g %.5g", step, x, y);
}

/* A band per stretch without gaps: along its upper edge and back along the lower one. */
static void draw_band(struct text *svg, struct axis x, struct axis y, const struct figure_mark *mark, size_t marks)
{
    for (size_t first = 0, end; first < marks; first = end + (end == first)) {
        for (end = first; end < marks && !isnan(mark[end].low) && !isnan(mark[end].high);)
            end++;
        if (end - first < 2)
            continue;
        text_add(svg, "<path class=\"band c%zu\" d=\"", mark->colour);
        for (size_t i = first; i < end; i++)
            add_place(svg, i == first ? 'M' : 'L', place(x, mark[i].x), place(y, mark[i].high));
        for (size_t i = end; i-- > first;)
            add_place(svg, 'L', place(x, mark[i].x), place(y, mark[i].low));
        text_add(svg, "z\"/>\n");
    }
}

static bool lies_near(struct axis y, const struct figure_mark *a, const struct figure_mark *b)
{
    return a->x == b->x && fabs(place(y, a->value) - place(y, b->value)) < NEAR;
}

/* Adds to others[i] the series from `other` on that lie on this one between its points i − 1 and i. */
static void count_others(struct axis y, const struct figure_mark *mark, size_t marks, const struct figure_mark *other,
                         const struct figure_mark *end, int *others)
{
    size_t i = 1;
    for (; other + 1 < end; other++) {
        if (other->begins)
            i = 1;
        while (i < marks && mark[i - 1].x < other->x)
            i++;
        if (i < marks && !other[1].begins && lies_near(y, &mark[i - 1], other) && lies_near(y, &mark[i], other + 1))
            others[i] += others[i] + 1 < REPORT_BEST;
    }
}

/* Where later curves will lie on this one, a wider one of its colour shows at their sides. */
static void draw_hidden(const struct drawing *drawing, struct axis x, struct axis y, const struct figure_mark *mark,
                        size_t marks)
{
    OWNED int *others = xcalloc(marks + 1, sizeof *others);
    count_others(y, mark, marks, mark + marks, drawing->panel->mark + drawing->panel->marks, others);
    for (size_t i = 1; i < marks; i++) {
        if (others[i] > 0 && others[i] != others[i - 1]) {
            text_add(drawing->svg, "<path class=\"line c%zu w%d\" d=\"", mark->colour, others[i]);
            add_place(drawing->svg, 'M', place(x, mark[i - 1].x), place(y, mark[i - 1].value));
        }
        if (others[i] > 0)
            add_place(drawing->svg, 'L', place(x, mark[i].x), place(y, mark[i].value));
        text_add(drawing->svg, "%s", others[i] > 0 && others[i + 1] != others[i] ? "\"/>\n" : "");
    }
}

static void draw_series(const struct drawing *drawing, struct axis x, struct axis y, const struct figure_mark *mark,
                        size_t marks)
{
    draw_hidden(drawing, x, y, mark, marks);
    bool points = text_has_word(drawing->figure->part->words, "points");
    text_add(drawing->svg, "<path class=\"line c%zu\" d=\"", mark->colour);
    for (size_t i = 0; i < marks; i++)
        if (!isnan(mark[i].value))
            add_place(drawing->svg, i == 0 || isnan(mark[i - 1].value) ? 'M' : 'L', place(x, mark[i].x),
                      place(y, mark[i].value));
    text_add(drawing->svg, "\"/>\n");
    for (size_t i = 0; i < marks; i++)
        if (points && !isnan(mark[i].value))
            draw_mark(drawing->svg, mark->colour, place(x, mark[i].x), place(y, mark[i].value), mark->name,
                      mark[i].value, drawing->figure->decimals);
}

void draw_lines(struct drawing *drawing)
{
    const struct figure_panel *panel = drawing->panel;
    double bottom = TOP + fmin(drawing->width / 2, 160), ticks[TICKS];
    struct axis x = {range_x(drawing->figure), 32, drawing->width - 8}, y = {drawing->range, bottom, TOP};
    size_t count = find_ticks(y.range, true, ticks);
    for (size_t i = 0; i < count; i++) {
        draw_line(drawing->svg, "grid", x.from, place(y, ticks[i]), x.to, place(y, ticks[i]));
        draw_number(drawing->svg, "ty", x.from - 5, place(y, ticks[i]) + 3.5, ticks[i], DECIMALS_ALL);
    }
    draw_axis(drawing, x, bottom, text_has_word(drawing->figure->part->words, "fractions"), 29);
    if (!isnan(panel->line))
        draw_line(drawing->svg, "mark", place(x, panel->line), TOP, place(x, panel->line), bottom);
    for (int lines = 0; lines < 2; lines++) /* above all bands */
        for (size_t first = 0, end; first < panel->marks; first = end) {
            for (end = first + 1; end < panel->marks && !panel->mark[end].begins;)
                end++;
            if (lines)
                draw_series(drawing, x, y, &panel->mark[first], end - first);
            else
                draw_band(drawing->svg, x, y, &panel->mark[first], end - first);
        }
    drawing->height = bottom + 34;
}

/* --- Intervals and bars: the name of each above it, which may be long, then its value --- */

static void draw_row(const struct drawing *drawing, struct axis x, const struct figure_mark *mark, double top, double y)
{
    const struct figure *figure = drawing->figure;
    struct text *svg = drawing->svg;
    double low = place(x, mark->low), high = place(x, mark->high), zero = place(x, 0), at = place(x, mark->value);
    draw_text(svg, "tl", x.from, top + 13, mark->name, (size_t)((x.to - x.from) / LETTER));
    text_add(svg, "<text class=\"ty\" x=\"%g\" y=\"%.4g\">", x.to, y - 11);
    html_number(svg, mark->value, figure->decimals);
    for (int end = 0; end < 2 && !isnan(mark->low); end++) { /* "1.2 [0.9, 1.5]" */
        text_add(svg, end == 0 ? " [" : ", ");
        html_number(svg, end == 0 ? mark->low : mark->high, figure->decimals);
    }
    text_add(svg, isnan(mark->low) ? "</text>\n" : "]</text>\n");
    draw_line(svg, "grid", x.from, y, x.to, y);
    if (figure->zero && x.range.low < 0 && x.range.high > 0) /* below the words */
        draw_line(svg, "mark", zero, y - 7, zero, y + 9);
    if (figure->kind->bars && !isnan(mark->value)) {
        text_add(svg, "<path class=\"m c%zu\" d=\"M%.5g %.5gH%.5gv8H%.5gz\">", mark->colour, zero, y - 4, at, zero);
        draw_hover(svg, mark->name, mark->value, figure->decimals);
        return;
    }
    if (!isnan(mark->low))
        text_add(svg, "<path class=\"line c%zu\" d=\"M%.5g %.5gH%.5gM%.5g %.5gv7M%.5g %.5gv7\"/>\n", mark->colour, low,
                 y, high, low, y - 3.5, high, y - 3.5);
    if (!isnan(mark->value))
        draw_mark(svg, mark->colour, at, y, mark->name, mark->value, figure->decimals);
}

void draw_rows(struct drawing *drawing)
{
    struct axis x = {drawing->range, 14, drawing->width - 14}; /* room for half a label */
    double top = TOP - 2;
    for (size_t i = 0; i < drawing->panel->marks; i++, top += ROW)
        draw_row(drawing, x, &drawing->panel->mark[i], top, top + ROW - 10);
    draw_axis(drawing, x, top, true, 30);
    drawing->height = top + (drawing->figure->part->says[ON_X] != NULL ? 36 : 22);
}
