/* A figure on the page, and as files for papers. */
#include <math.h>
#include <string.h>

#include "core/file.h"
#include "results/report/figure.h"
#include "results/report/html.h"

EMBEDDED_FILES(report_files); /* style.css is the first */

#define MARGIN 6.0
#define GAP 14.0
#define TITLE 20.0
#define LINE 16.0
#define AXIS 14.0  /* room for the name of the vertical axis */
#define LETTER 7.5 /* the mean width of a letter of the title */
#define KEY 34.0   /* room for a key's mark */
#define POINT 0.75 /* points for one unit of the drawing: words of 10 have 7.5 points */

#define LETTER_OF_PANEL 7.2 /* of the title of a panel */

enum { TITLE_MOST = 36, NAME_MOST = 60, BAR_NAME_MOST = 40, BAR_END = 24 /* room for a number */ };

/* --- Keys --- */

/* A legend's mark, as wide as 20. */
static void draw_key(struct text *svg, const struct figure *figure, size_t colour, double x, double y)
{
    if (figure->kind->form == FORM_GRID)
        text_add(svg, "<path class=\"m c%zu\" d=\"M%.5g %.5gh10v10h-10z\"/>\n", colour, x + 10, y - 5);
    else
        text_add(svg, "<path class=\"line c%zu\" d=\"M%.5g %.5gh20\"/>\n", colour, x, y);
    if (text_has_word(figure->part->words, "points"))
        draw_mark(svg, colour, x + 10, y, "", (double)NAN, 0);
}

/* The name and the ends of shades, and each of them. */
static void draw_colour_bar(struct text *svg, const struct figure *figure, double x, double y)
{
    struct figure_range range = figure_values(figure, 0);
    const char *name = figure->part->says[ON_VALUE] != NULL ? figure->part->says[ON_VALUE] : "";
    double left = x + draw_width(name, BAR_NAME_MOST) + (*name != 0 ? 2 * BAR_END : BAR_END);
    draw_text(svg, "", x, y + 9, name, BAR_NAME_MOST);
    text_add(svg, "<text class=\"ty\" x=\"%.4g\" y=\"%.4g\">%.3g</text>\n", left - 4, y + 9, range.low);
    for (int level = 0; level < HTML_LEVELS; level++)
        text_add(svg, "<path class=\"h%d\" d=\"M%.5g %.5gh12v10h-12z\"/>\n", level, left + 12 * level, y);
    text_add(svg, "<text class=\"\" x=\"%.4g\" y=\"%.4g\">%.3g</text>\n", left + 12 * HTML_LEVELS + 4, y + 9,
             range.high);
}

/* --- Panels --- */

/* Draws a panel as an svg element and returns its height; width 0: as on the page. */
static double draw_panel(struct text *svg, const struct figure *figure, size_t panel, double width)
{
    static void (*const forms[])(struct drawing *) = {
        [FORM_LINES] = draw_lines, [FORM_ROWS] = draw_rows, [FORM_GRID] = draw_grid};
    SCOPED(text_free) struct text body = {0};
    const char *title = figure->panel[panel].title;
    struct drawing drawing = {.svg = &body,
                              .figure = figure,
                              .panel = &figure->panel[panel],
                              .range = figure_values(figure, panel),
                              .file = width > 0,
                              .width = width > 0 ? width : figure->kind->width};
    forms[figure->kind->form](&drawing);
    text_add(svg, "<svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\"", drawing.width, drawing.height,
             drawing.width, drawing.height);
    html_element(svg, " aria-label=\"", title, "\">\n");
    draw_text(svg, "pt", 0, 11, title,
              (size_t)fmin(drawing.width / LETTER_OF_PANEL, TITLE_MOST)); /* what fits a narrow one */
    text_add(svg, "%s</svg>\n", body.size > 0 ? body.data : "");
    return drawing.height;
}

/* --- Within the page --- */

void figure_show(struct text *page, const struct figure *figure, bool with_files)
{
    const struct part *part = figure->part;
    text_add(page, "<figure class=\"drawing %s%s\" id=\"%s\">\n", figure->kind->width > 260 ? "intervals" : "small",
             text_has_word(part->words, "noisy") ? " noisy" : "", part->name);
    html_element(page, "<p class=\"title\">", part->title, "</p>\n<p class=\"legend\">");
    for (size_t i = 0; i < REPORT_BEST; i++)
        if (figure_legend(figure, i) !=
            NULL) { /* the page's filter hides configurations; colours of cells are experts */
            text_add(page, figure->kind->form == FORM_GRID ? "<span>" : "<span data-colour=\"%zu\">", i);
            text_add(page, "<svg class=\"key\" viewBox=\"0 0 22 10\" aria-hidden=\"true\">");
            draw_key(page, figure, i, 1, 5);
            html_element(page, "</svg>", figure_legend(figure, i), "</span> ");
        }
    if (figure->kind->shades) {
        text_add(page, "<svg class=\"shades\" viewBox=\"0 0 300 12\" aria-hidden=\"true\">");
        draw_colour_bar(page, figure, 0, 1);
        text_add(page, "</svg>");
    }
    text_add(page, "</p>\n<div class=\"panels%s\">\n", figure->printed ? " single" : "");
    size_t before = page->size;
    for (size_t i = 0; i < figure->panels; i++)
        draw_panel(page, figure, i, 0);
    bool hidden = strstr(page->data + before, " w1\" d=") != NULL;
    html_element(page, "</div>\n<figcaption>", part->says[ON_CAPTION] != NULL ? part->says[ON_CAPTION] : "", "");
    text_add(page, "%s", hidden ? " Where curves coincide, the lower one is drawn wider." : "");
    if (with_files)
        html_files(page, part->name);
    text_add(page, "</figcaption></figure>\n");
}

/* --- As a document --- */

/* The drawings' rules of style.css, each var(--name) as the light theme has it: light-dark(here, not there). */
static void add_style(struct text *svg)
{
    const char *css = (const char *)report_files[0].data, *at = strstr(css, "/* Drawings"), *end = strstr(at, "\n\n");
    text_add(svg, "<style>\n");
    for (const char *next; (next = strstr(at, "var(")) != NULL && next < end; at = strchr(next, ')') + 1) {
        char name[32];
        snprintf(name, sizeof name, "%.*s: light-dark(", (int)strcspn(next + 4, ")"), next + 4);
        const char *value = strstr(css, name) + strlen(name);
        text_add(svg, "%.*s%.*s", (int)(next - at), at, (int)strcspn(value, ","), value);
    }
    text_add(svg, "%.*s\n</style>\n", (int)(end - at), at);
}

/* Returns where the legend ends. */
static double add_legend(struct text *svg, const struct figure *figure, double width, double top)
{
    double x = MARGIN;
    for (size_t i = 0; i < REPORT_BEST; i++) {
        const char *name = figure_legend(figure, i);
        double size = name != NULL ? KEY + draw_width(name, NAME_MOST) : 0;
        if (name == NULL)
            continue;
        if (x > MARGIN && x + size > width - MARGIN) {
            x = MARGIN;
            top += LINE;
        }
        draw_key(svg, figure, i, x, top + 8);
        draw_text(svg, "tl", x + 25, top + 12, name, NAME_MOST);
        x += size;
    }
    return x > MARGIN ? top + LINE : top;
}

/* Adds the panels and returns where they end: as many beside one another as have room, the rows of equal length if possible. */
static double add_panels(struct text *svg, const struct figure *figure, double width, double top)
{
    const char *title = figure->part->says[ON_Y];
    double left = MARGIN + (title != NULL ? AXIS : 0), available = width - MARGIN - left;
    double most = figure->printed ? 1 : floor((available + GAP) / (figure->kind->least + GAP));
    size_t across = (size_t)ceil((double)figure->panels / ceil((double)figure->panels / fmax(most, 1)));
    double panel = (available + GAP) / (double)across - GAP;
    double height = 0;
    for (size_t i = 0; i < figure->panels; i++) {
        size_t column = i % across;
        top += column == 0 && i > 0 ? height + GAP / 2 : 0;
        text_add(svg, "<g transform=\"translate(%.6g %.6g)\">", left + (double)column * (panel + GAP), top);
        height = draw_panel(svg, figure, i, panel);
        text_add(svg, "</g>\n");
        if (column > 0 || title == NULL)
            continue;
        text_add(svg, "<g transform=\"rotate(-90 %g %.5g)\">", MARGIN + 8, top + height / 2);
        draw_text(svg, "tx", MARGIN + 8, top + height / 2, title, SIZE_MAX);
        text_add(svg, "</g>\n");
    }
    return top + height;
}

static void add_document(struct text *svg, const struct figure *figure, double points)
{
    SCOPED(text_free) struct text body = {0};
    double width = points / POINT, top = MARGIN;
    if (figure->kind->form == FORM_GRID) { /* the others say it on their axes */
        draw_text(&body, "pt", MARGIN, MARGIN + 10, figure->part->title, (size_t)((width - 2 * MARGIN) / LETTER));
        top += TITLE;
    }
    if (figure->kind->shades) {
        draw_colour_bar(&body, figure, MARGIN, top);
        top += figure->printed ? 0 : LINE; /* the panel of a printed one has no title */
    }
    top = add_legend(&body, figure, width, top);
    double height = add_panels(&body, figure, width, top + MARGIN) + MARGIN;
    text_add(svg,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"panels\" font-family=\"sans-serif\" viewBox=\"0 0 %.6g "
             "%.6g\" width=\"%.6gpt\" height=\"%.6gpt\">\n",
             width, height, POINT * width, POINT * height);
    add_style(svg);
    text_add(svg, "%s</svg>\n", body.data);
}

/* --- Files --- */

static status add_file(const struct figure *figure, const char *end, const struct text *text, struct error *error)
{
    struct report *report = figure->part->report;
    const char *name = report_format(report, REPORT_FIGURES "/%s%s", figure->part->name, end);
    return file_group_add(&report->files, name, text->data, text->size, error);
}

static status write_width(const struct figure *figure, const char *end, double points, struct error *error)
{
    SCOPED(text_free) struct text svg = {0};
    add_document(&svg, figure, points);
    return add_file(figure, end, &svg, error);
}

/* Points of a column and of both, of a page with two (CVPR's; others differ by a few points). The rows that are drawn are for
 * whoever draws them in another way. */
status figure_write(const struct figure *figure, struct error *error)
{
    const struct part *part = figure->part;
    const char *text = part->says[ON_CAPTION] != NULL ? part->says[ON_CAPTION] : "";
    SCOPED(text_free) struct text caption = {0}, csv = {0};
    struct table rows = *part->rows;
    rows.cell += part->first * rows.columns;
    rows.count = (part->end - part->first) * rows.columns;
    text_add(&caption, "%s. %s%s\n%s\n", part->title, text, *text != 0 ? "\n" : "",
             figure->kind->shades ? "Shades after ColorBrewer's Blues, light to dark, also for colour-blind readers."
                                  : "Colours: Okabe and Ito (2008), also for colour-blind readers.");
    table_render(&rows, TABLE_CSV, false, &csv);
    TRY(add_file(figure, ".txt", &caption, error));
    TRY(add_file(figure, ".csv", &csv, error));
    TRY(write_width(figure, "-column.svg", 234, error));
    TRY(write_width(figure, ".svg", 495, error));
    part->report->figures++;
    return OK;
}
