#include "results/report/figure.h"

#include <math.h>
#include <string.h>

#include "results/report/drawing.h"
#include "results/report/html.h"
#include "results/report/plot.h"

#define ROOM 0.04 /* of the range, at both ends */

static void widen(double *low, double *high, double value)
{
    if (isnan(value))
        return;
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

static void panel_range(const struct figure *figure, const struct figure_panel *panel, double *low, double *high)
{
    for (size_t s = 0; s < panel->series_count; s++)
        for (size_t i = 0; i < panel->series[s].points; i++) {
            const struct figure_series *series = &panel->series[s];
            widen(low, high, series->y[i]);
            widen(low, high, series->low ? series->low[i] : (double)NAN);
            widen(low, high, series->high ? series->high[i] : (double)NAN);
        }
    for (size_t i = 0; panel->value != NULL && i < figure->rows * figure->columns; i++)
        widen(low, high, panel->value[i]);
    for (size_t i = 0; i < panel->intervals; i++) {
        widen(low, high, panel->interval[i].mean);
        widen(low, high, panel->interval[i].low);
        widen(low, high, panel->interval[i].high);
    }
}

struct figure_range figure_range(const struct figure *figure, size_t panel)
{
    double least = INFINITY, most = -INFINITY;
    for (size_t p = 0; p < figure->panels; p++)
        if (!figure->own_ranges || p == panel)
            panel_range(figure, &figure->panel[p], &least, &most);
    if (figure->zero) {
        least = fmin(least, 0);
        most = fmax(most, 0);
    }
    if (!(most >= least)) {
        least = 0;
        most = 1;
    }
    double room = most > least ? (most - least) * ROOM : fmax(fabs(most) * ROOM, 0.5);
    bool shades = figure->kind == FIGURE_HEAT;
    struct figure_range range = {.low = !isnan(figure->low) ? figure->low
                                        : shades            ? least
                                                            : least - room,
                                 .high = !isnan(figure->high) ? figure->high
                                         : shades             ? most
                                                              : most + room};
    if (!(range.high > range.low))
        range.high = range.low + 1;
    return range;
}

struct figure_range figure_range_x(const struct figure *figure)
{
    struct figure_range range = {INFINITY, -INFINITY};
    for (size_t p = 0; p < figure->panels; p++)
        for (size_t s = 0; s < figure->panel[p].series_count; s++)
            for (size_t i = 0; i < figure->panel[p].series[s].points; i++)
                widen(&range.low, &range.high, figure->panel[p].series[s].x[i]);
    return range.high > range.low ? range : (struct figure_range){0, 1};
}

size_t figure_ticks(double low, double high, double ticks[FIGURE_TICKS])
{
    static const double steps[] = {1, 2, 5, 10};
    double rough = (high - low) / 6, unit = pow(10, floor(log10(rough))), step = 10 * unit;
    for (size_t i = sizeof steps / sizeof *steps; i-- > 0;)
        if (steps[i] * unit >= rough)
            step = steps[i] * unit;
    size_t count = 0;
    for (double at = ceil(low / step - 1e-9); at * step <= high + 1e-9 * step && count < FIGURE_TICKS; at++)
        ticks[count++] = at * step + 0.0; /* no −0 */
    return count;
}

size_t figure_whole_ticks(double low, double high, double ticks[FIGURE_TICKS])
{
    size_t count = figure_ticks(low, high, ticks), whole = 0;
    for (size_t i = 0; i < count; i++)
        if (ticks[i] == rint(ticks[i]))
            ticks[whole++] = ticks[i];
    return whole;
}

bool figure_uses(const struct figure *figure, size_t colour)
{
    for (size_t p = 0; p < figure->panels; p++)
        for (size_t s = 0; s < figure->panel[p].series_count; s++)
            if (figure->panel[p].series[s].colour == colour && figure->panel[p].series[s].points > 0)
                return true;
    return false;
}

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

static void add_drawing(struct text *page, const struct figure *figure, bool with_files)
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

status figure_write(struct report *report, const struct figure *figure, struct text *page, struct error *error)
{
    TRY(report_stopped(report, error));
    if (!figure->only_file)
        add_drawing(page, figure, report->plots);
    return report->plots ? plot_write(report, figure, error) : OK;
}
