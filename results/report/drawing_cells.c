/* Cells in colours, without gaps, as the patches of an image lie. */
#include <math.h>

#include "results/report/drawing.h"

#define WIDTH 260.0 /* on the page */
#define TOP 20.0

/* Cells of one colour that are neighbours in a row are one rectangle, which keeps the page small. */
static void draw_colour(struct text *svg, const struct figure *figure, const struct figure_panel *panel, double cell,
                        size_t colour)
{
    bool any = false;
    for (size_t row = 0; row < figure->rows; row++)
        for (size_t first = 0, end; first < figure->columns; first = end) {
            size_t at = row * figure->columns;
            for (end = first;
                 end < figure->columns && !isnan(panel->value[at + end]) && panel->colour[at + end] == colour;)
                end++;
            if (end == first) {
                end++;
                continue;
            }
            /* crisp edges: no seams between rectangles */
            if (!any)
                text_add(svg, "<path class=\"m c%zu\" shape-rendering=\"crispEdges\" d=\"", colour);
            any = true;
            text_add(svg, "M%.5g %.5gH%.5gV%.5gH%.5gz", (double)first * cell, TOP + (double)row * cell,
                     (double)end * cell, TOP + (double)(row + 1) * cell, (double)first * cell);
        }
    if (any)
        text_add(svg, "\"/>\n");
}

struct drawing_size draw_cells(struct text *svg, const struct figure *figure, const struct figure_panel *panel,
                               const struct figure_range *range, double width)
{
    (void)range;
    width = width > 0 ? width : WIDTH;
    double cell = width / (double)figure->columns;
    struct drawing_size size = {width, TOP + (double)figure->rows * cell};
    draw_begin(svg, panel, size.width, size.height);
    for (size_t colour = 0; colour < REPORT_BEST; colour++)
        draw_colour(svg, figure, panel, cell, colour);
    draw_end(svg);
    return size;
}
