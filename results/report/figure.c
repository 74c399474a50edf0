#include "results/report/figure.h"

#include <math.h>

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
    for (size_t p = 0; p < figure->panels; p++) {
        for (size_t s = 0; s < figure->panel[p].series_count; s++)
            if (figure->panel[p].series[s].colour == colour && figure->panel[p].series[s].points > 0)
                return true;
        for (size_t i = 0; figure->kind == FIGURE_CELLS && i < figure->rows * figure->columns; i++)
            if (!isnan(figure->panel[p].value[i]) && figure->panel[p].colour[i] == colour)
                return true;
    }
    return false;
}

bool figure_names(const struct figure *figure)
{
    size_t names = 0;
    for (size_t i = 0; i < figure->legend_count; i++)
        names += figure->legend[i] != NULL;
    return names > (figure->kind != FIGURE_CELLS);
}
