#include "results/report/figure_drawing.h"

#include <math.h>
#include <stdio.h>

#include "results/report/html.h"

enum { BAR_NAME_MOST = 40, BAR_END = 24 /* room for a number */ };

static draw_function *const drawings[] = {
    [FIGURE_LINES] = draw_lines,
    [FIGURE_HEAT] = draw_heat,
    [FIGURE_INTERVALS] = draw_intervals,
    [FIGURE_CELLS] = draw_heat,
};

struct drawing_size draw_panel(struct text *svg, const struct figure *figure, size_t panel, double width)
{
    struct figure_range range = figure_range(figure, panel);
    return drawings[figure->kind](svg, figure, &figure->panel[panel], &range, width);
}

/* --- Within the page --- */

static void add_legend(struct text *page, const struct figure *figure)
{
    bool cells = figure->kind == FIGURE_CELLS; /* of experts, not of configurations, which the page's words filter */
    if (!figure_names(figure))
        return;
    text_add(page, "<p class=\"legend\">");
    for (size_t i = 0; i < figure->legend_count; i++) {
        if (!figure_uses(figure, i))
            continue;
        text_add(page, cells ? "<span>" : "<span data-colour=\"%zu\">", i);
        text_add(page, "<svg class=\"key\" viewBox=\"0 0 22 10\" aria-hidden=\"true\">");
        text_add(
            page,
            cells ? "<path class=\"m c%zu\" d=\"M12 0h10v10h-10z\"/>" : "<path class=\"line c%zu\" d=\"M1 5H21\"/>", i);
        if (figure->points)
            draw_mark(page, i, 11, 5, "", NAN, 0);
        text_add(page, "</svg>");
        html_escape(page, figure->legend[i]);
        text_add(page, "</span> ");
    }
    text_add(page, "</p>\n");
}

static void add_number(struct text *svg, const char *class, double x, double y, double value)
{
    char number[32];
    snprintf(number, sizeof number, "%.3g", value);
    draw_text(svg, class, x, y, number, SIZE_MAX);
}

void draw_colour_bar(struct text *svg, const struct figure *figure, double x, double y)
{
    struct figure_range range = figure_range(figure, 0);
    const char *name = figure->value_title != NULL ? figure->value_title : "";
    double left = x + draw_width(name, BAR_NAME_MOST) + (*name != 0 ? BAR_END : 0);
    draw_text(svg, "", x, y + 9, name, BAR_NAME_MOST);
    add_number(svg, "ty", left + BAR_END - 4, y + 9, range.low);
    for (int level = 0; level < HTML_LEVELS; level++)
        text_add(svg, "<path class=\"h%d\" d=\"M%.5g %.5gh12v10h-12z\"/>\n", level, left + BAR_END + 12 * level, y);
    add_number(svg, "", left + BAR_END + 12 * HTML_LEVELS + 4, y + 9, range.high);
}

static void add_scale(struct text *page, const struct figure *figure)
{
    if (figure->kind != FIGURE_HEAT)
        return;
    text_add(page, "<p class=\"legend bar panels\"><svg class=\"shades\" viewBox=\"0 0 300 12\" aria-hidden=\"true\">");
    draw_colour_bar(page, figure, 0, 1);
    text_add(page, "</svg></p>\n");
}

void draw_figure(struct text *page, const struct figure *figure, bool with_files)
{
    text_add(page, "<figure class=\"drawing %s%s\" id=\"%s\">\n",
             figure->kind == FIGURE_INTERVALS ? "intervals" : "small", figure->noisy ? " noisy" : "", figure->name);
    text_add(page, "<p class=\"title\">");
    html_escape(page, figure->title);
    text_add(page, "</p>\n");
    add_legend(page, figure);
    add_scale(page, figure);
    text_add(page, "<div class=\"panels%s\">\n", figure->printed ? " single" : "");
    for (size_t i = 0; i < figure->panels; i++)
        draw_panel(page, figure, i, 0);
    text_add(page, "</div>\n<figcaption>");
    html_escape(page, figure->caption);
    if (with_files)
        html_files(page, figure->name);
    text_add(page, "</figcaption></figure>\n");
}
