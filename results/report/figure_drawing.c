#include "results/report/figure_drawing.h"

#include <math.h>

#include "results/report/html.h"

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
