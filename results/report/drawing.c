#include "results/report/drawing.h"

#include <stdlib.h>
#include <string.h>

#include "results/report/html.h"

#define LETTER 6.2      /* the mean width of one */
#define WIDE_LETTER 7.2 /* of a title, in bold */

enum { TITLE_MOST = 36 };

void draw_begin(struct text *svg, const struct figure_panel *panel, double width, double height)
{
    text_add(svg, "<svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" aria-label=\"", width, height,
             width, height);
    html_escape(svg, panel->title);
    text_add(svg, "\">\n");
    size_t fits = (size_t)(width / WIDE_LETTER); /* in a narrow panel */
    draw_text(svg, "pt", 0, 11, panel->title, fits < TITLE_MOST ? fits : TITLE_MOST);
}

void draw_end(struct text *svg)
{
    text_add(svg, "</svg>\n");
}

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

static void begin_text(struct text *svg, const char *class, double x, double y)
{
    text_add(svg, "<text class=\"%s\" x=\"%.4g\" y=\"%.4g\">", class, x, y);
}

void draw_text(struct text *svg, const char *class, double x, double y, const char *string, size_t most)
{
    size_t characters, bytes = beginning(string, most, &characters);
    bool cut = string[bytes] != 0;
    begin_text(svg, class, x, y);
    if (cut) {
        text_add(svg, "<title>");
        html_escape(svg, string);
        text_add(svg, "</title>");
    }
    char *begin = strndup(string, bytes);
    svg->failed |= begin == NULL;
    html_escape(svg, begin != NULL ? begin : "");
    free(begin);
    text_add(svg, "%s</text>\n", cut ? "…" : "");
}

void draw_number(struct text *svg, const char *class, double x, double y, double value, int decimals)
{
    begin_text(svg, class, x, y);
    html_number(svg, value, decimals);
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
