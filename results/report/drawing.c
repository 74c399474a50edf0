#include "results/report/drawing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "results/report/html.h"

#define LETTER 6.2 /* the mean width of one */

enum { TITLE_MOST = 36 };

static struct drawing_size (*const drawings[])(struct text *, const struct figure *, const struct figure_panel *,
                                               const struct figure_range *) = {
    [FIGURE_LINES] = draw_lines,
    [FIGURE_HEAT] = draw_heat,
    [FIGURE_INTERVALS] = draw_intervals,
};

struct drawing_size draw_panel(struct text *svg, const struct figure *figure, size_t panel)
{
    struct figure_range range = figure_range(figure, panel);
    return drawings[figure->kind](svg, figure, &figure->panel[panel], &range);
}

void draw_begin(struct text *svg, const struct figure_panel *panel, double width, double height)
{
    text_add(svg, "<svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" aria-label=\"", width, height,
             width, height);
    html_escape(svg, panel->title);
    text_add(svg, "\">\n");
    draw_short_text(svg, "pt", 0, 11, panel->title, TITLE_MOST);
}

void draw_end(struct text *svg)
{
    text_add(svg, "</svg>\n");
}

double draw_width(const char *string, size_t most)
{
    size_t letters = 0;
    for (; *string != 0; string++)
        letters += ((unsigned char)*string & 0xc0) != 0x80;
    return LETTER * (double)(letters < most ? letters : most);
}

void draw_text(struct text *svg, const char *class, double x, double y, const char *string)
{
    text_add(svg, "<text class=\"%s\" x=\"%.4g\" y=\"%.4g\">", class, x, y);
    html_escape(svg, string);
    text_add(svg, "</text>\n");
}

void draw_short_text(struct text *svg, const char *class, double x, double y, const char *string, size_t most)
{
    size_t bytes = 0, characters = 0;
    for (; string[bytes] != 0 && characters < most; bytes++)
        characters += ((unsigned char)string[bytes + 1] & 0xc0) != 0x80;
    if (string[bytes] == 0) {
        draw_text(svg, class, x, y, string);
        return;
    }
    text_add(svg, "<text class=\"%s\" x=\"%.4g\" y=\"%.4g\"><title>", class, x, y);
    html_escape(svg, string);
    text_add(svg, "</title>");
    char *begin = strndup(string, bytes);
    svg->failed |= begin == NULL;
    html_escape(svg, begin != NULL ? begin : "");
    free(begin);
    text_add(svg, "…</text>\n");
}

void draw_tick(struct text *svg, const char *class, double x, double y, double value)
{
    text_add(svg, "<text class=\"%s\" x=\"%.4g\" y=\"%.4g\">", class, x, y);
    html_number(svg, value, DECIMALS_ALL);
    text_add(svg, "</text>\n");
}

void draw_line(struct text *svg, const char *class, double x1, double y1, double x2, double y2)
{
    text_add(svg, "<path class=\"%s\" d=\"M%.4g %.4gL%.4g %.4g\"/>\n", class, x1, y1, x2, y2);
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
    text_add(svg, "<path class=\"m c%zu\" d=\"M%.4g %.4g%s\"><title>", colour, x, y, shapes[colour % REPORT_BEST]);
    html_escape(svg, label);
    text_add(svg, ": ");
    html_number(svg, value, decimals);
    text_add(svg, "</title></path>\n");
}

/* --- Within the page --- */

static void add_legend(struct text *page, const struct figure *figure)
{
    if (figure->legend_count < 2)
        return;
    text_add(page, "<p class=\"legend\">");
    for (size_t i = 0; i < figure->legend_count; i++) {
        if (!figure_uses(figure, i))
            continue;
        text_add(page, "<span><svg class=\"key\" viewBox=\"0 0 22 10\" aria-hidden=\"true\">");
        text_add(page, "<path class=\"line c%zu\" d=\"M1 5H21\"/>", i);
        draw_mark(page, i, 11, 5, "", NAN, 0);
        text_add(page, "</svg>");
        html_escape(page, figure->legend[i]);
        text_add(page, "</span> ");
    }
    text_add(page, "</p>\n");
}

static void add_scale(struct text *page, const struct figure *figure)
{
    if (figure->kind != FIGURE_HEAT)
        return;
    struct figure_range range = figure_range(figure, 0);
    text_add(page, "<p class=\"legend\"><span>");
    text_add(page, "%.3g", range.low);
    text_add(page, " <svg class=\"shades\" viewBox=\"0 0 90 10\" aria-hidden=\"true\">");
    for (int level = 0; level < HTML_LEVELS; level++)
        text_add(page, "<path class=\"h%d\" d=\"M%d 0h10v10h-10z\"/>", level, 10 * level);
    text_add(page, "</svg> ");
    text_add(page, "%.3g", range.high);
    text_add(page, "</span></p>\n");
}

void draw_figure(struct text *page, const struct figure *figure, bool with_files)
{
    text_add(page, "<figure class=\"drawing %s\" id=\"%s\">\n",
             figure->kind == FIGURE_INTERVALS ? "intervals" : "small", figure->name);
    text_add(page, "<p class=\"title\">");
    html_escape(page, figure->title);
    text_add(page, "</p>\n");
    add_legend(page, figure);
    add_scale(page, figure);
    text_add(page, "<div class=\"panels\">\n");
    for (size_t i = 0; i < figure->panels; i++)
        draw_panel(page, figure, i);
    text_add(page, "</div>\n<figcaption>");
    html_escape(page, figure->caption);
    if (with_files)
        html_files(page, figure->name);
    text_add(page, "</figcaption></figure>\n");
}
