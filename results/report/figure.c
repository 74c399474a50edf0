#include "results/report/figure.h"

#include <math.h>
#include <stdio.h>

#include "results/report/html.h"

#define ROOM 0.04       /* of the range, at both ends */
#define WIDE_LETTER 7.2 /* the mean width of one of a title, in bold */

enum { TITLE_MOST = 36, BAR_NAME_MOST = 40, BAR_END = 24 /* room for a number */ };

const struct figure_kind *figure_kind(const char *words)
{
    static const struct figure_kind kinds[] = {
        {"line", draw_lines, {"x", "y"}, .width = 260, .least = 130, .legend = true},
        {"heat", draw_heat, {"value", "value"}, .width = 260, .least = 130, .grid = true, .shades = true},
        {"cells", draw_cells, {"x", "y"}, .width = 260, .least = 130, .grid = true, .legend = true},
        {"interval", draw_intervals, {"y", "y"}, .width = 300, .least = 200},
        {"bars", draw_intervals, {"y", "y"}, .width = 300, .least = 200, .bars = true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (text_has_word(words, kinds[i].word))
            return &kinds[i];
    return NULL;
}

/* --- Ranges and colours --- */

/* The range of a panel's axis of values, or of its shades. */
static struct figure_range range_of(const struct figure *figure, size_t panel)
{
    struct figure_range range = {INFINITY, -INFINITY};
    bool own = text_has_word(figure->words, "own_ranges");
    for (size_t p = 0; p < figure->panels; p++)
        for (size_t i = 0; (!own || p == panel) && i < figure->panel[p].marks; i++) {
            draw_widen(&range, figure->panel[p].mark[i].value);
            draw_widen(&range, figure->panel[p].mark[i].low);
            draw_widen(&range, figure->panel[p].mark[i].high);
        }
    if (figure->zero)
        draw_widen(&range, 0);
    if (!(range.high >= range.low))
        range = (struct figure_range){0, 1};
    double room = range.high > range.low ? (range.high - range.low) * ROOM : fmax(fabs(range.high) * ROOM, 0.5);
    room = figure->kind->shades ? 0 : room;
    range.low = isnan(figure->low) ? range.low - room : figure->low;
    range.high = isnan(figure->high) ? range.high + room : figure->high;
    if (!(range.high > range.low))
        range.high = range.low + 1;
    return range;
}

void figure_colour_bar(struct text *svg, const struct figure *figure, double x, double y)
{
    struct figure_range range = range_of(figure, 0);
    const char *name = figure->value_title != NULL ? figure->value_title : "";
    double left = x + draw_width(name, BAR_NAME_MOST) + (*name != 0 ? 2 * BAR_END : BAR_END);
    char low[32], high[32];
    snprintf(low, sizeof low, "%.3g", range.low);
    snprintf(high, sizeof high, "%.3g", range.high);
    draw_text(svg, "", x, y + 9, name, BAR_NAME_MOST);
    draw_text(svg, "ty", left - 4, y + 9, low, SIZE_MAX);
    for (int level = 0; level < HTML_LEVELS; level++)
        text_add(svg, "<path class=\"h%d\" d=\"M%.5g %.5gh12v10h-12z\"/>\n", level, left + 12 * level, y);
    draw_text(svg, "", left + 12 * HTML_LEVELS + 4, y + 9, high, SIZE_MAX);
}

static bool is_used(const struct figure *figure, size_t colour)
{
    for (size_t p = 0; p < figure->panels; p++)
        for (size_t i = 0; i < figure->panel[p].marks; i++)
            if (figure->panel[p].mark[i].colour == colour &&
                (!figure->kind->grid || !isnan(figure->panel[p].mark[i].value)))
                return true;
    return false;
}

/* Lines of one colour need none. */
const char *figure_legend(const struct figure *figure, size_t colour)
{
    size_t names = 0;
    for (size_t i = 0; figure->kind->legend && i < REPORT_BEST; i++)
        names += figure->legend[i] != NULL;
    return names > !figure->kind->grid && is_used(figure, colour) ? figure->legend[colour] : NULL;
}

/* --- A panel --- */

double figure_panel(struct text *svg, const struct figure *figure, size_t panel, double width)
{
    struct text body = {0};
    const char *title = figure->panel[panel].title;
    struct drawing drawing = {.svg = &body,
                              .figure = figure,
                              .panel = &figure->panel[panel],
                              .range = range_of(figure, panel),
                              .file = width > 0,
                              .width = width > 0 ? width : figure->kind->width};
    figure->kind->draw(&drawing);
    text_add(svg, "<svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\" aria-label=\"", drawing.width,
             drawing.height, drawing.width, drawing.height);
    html_escape(svg, title);
    text_add(svg, "\">\n");
    draw_text(svg, "pt", 0, 11, title,
              (size_t)fmin(drawing.width / WIDE_LETTER, TITLE_MOST)); /* what fits a narrow one */
    text_add(svg, "%s</svg>\n", body.size > 0 ? body.data : "");
    text_free(&body);
    return drawing.height;
}

/* --- Within the page --- */

/* The words of the page filter configurations, which are colours of lines; those of cells are experts. */
static void add_legend(struct text *page, const struct figure *figure)
{
    bool any = false;
    for (size_t i = 0; i < REPORT_BEST; i++) {
        if (figure_legend(figure, i) == NULL)
            continue;
        text_add(page, any ? "" : "<p class=\"legend\">");
        any = true;
        text_add(page, figure->kind->grid ? "<span>" : "<span data-colour=\"%zu\">", i);
        text_add(page,
                 "<svg class=\"key\" viewBox=\"0 0 22 10\" aria-hidden=\"true\"><path class=\"%s c%zu\" d=\"%s\"/>",
                 figure->kind->grid ? "m" : "line", i, figure->kind->grid ? "M12 0h10v10h-10z" : "M1 5H21");
        if (text_has_word(figure->words, "points"))
            draw_mark(page, i, 11, 5, "", (double)NAN, 0);
        text_add(page, "</svg>");
        html_escape(page, figure->legend[i]);
        text_add(page, "</span> ");
    }
    text_add(page, any ? "</p>\n" : "");
}

void draw_figure(struct text *page, const struct figure *figure, bool with_files)
{
    text_add(page, "<figure class=\"drawing %s%s\" id=\"%s\">\n", figure->kind->width > 260 ? "intervals" : "small",
             text_has_word(figure->words, "noisy") ? " noisy" : "", figure->name);
    text_add(page, "<p class=\"title\">");
    html_escape(page, figure->title);
    text_add(page, "</p>\n");
    add_legend(page, figure);
    if (figure->kind->shades) {
        text_add(page, "<p class=\"legend bar panels\"><svg class=\"shades\" viewBox=\"0 0 300 12\" "
                       "aria-hidden=\"true\">");
        figure_colour_bar(page, figure, 0, 1);
        text_add(page, "</svg></p>\n");
    }
    text_add(page, "<div class=\"panels%s\">\n", figure->printed ? " single" : "");
    for (size_t i = 0; i < figure->panels; i++)
        figure_panel(page, figure, i, 0);
    text_add(page, "</div>\n<figcaption>");
    html_escape(page, figure->caption);
    if (with_files)
        html_files(page, figure->name);
    text_add(page, "</figcaption></figure>\n");
}
