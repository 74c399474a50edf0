/* What a figure draws, as numbers in columns: for whoever draws it in another way. */
#include <math.h>

#include "results/report/figure.h"

static void add_number(struct text *data, double value, char end)
{
    if (isnan(value))
        text_add(data, "NaN%c", end);
    else
        text_add(data, "%.17g%c", value, end);
}

static void add_series(struct text *data, const struct figure_series *series)
{
    for (size_t i = 0; i < series->points; i++) {
        add_number(data, series->x[i], ' ');
        add_number(data, series->y[i], series->low ? ' ' : '\n');
        if (series->low == NULL)
            continue;
        add_number(data, series->low[i], ' ');
        add_number(data, series->high[i], '\n');
    }
    text_add(data, series->points ? "\n\n" : "NaN NaN NaN NaN\n\n\n");
}

static void add_cells(struct text *data, const struct figure *figure, const struct figure_panel *panel)
{
    size_t cells = figure->rows * figure->columns, framed = 0;
    for (size_t i = 0; i < cells; i++) {
        text_add(data, "%zu %zu ", i % figure->columns, i / figure->columns);
        add_number(data, panel->value[i], '\n');
    }
    text_add(data, "\n\n");
    if (panel->framed == NULL)
        return;
    for (size_t i = 0; i < cells; i++) {
        framed += panel->framed[i];
        if (panel->framed[i])
            text_add(data, "%zu %zu\n", i % figure->columns, i / figure->columns);
    }
    text_add(data, framed ? "\n\n" : "NaN NaN\n\n\n");
}

void figure_data(struct text *data, const struct figure *figure)
{
    static const char *const columns[] = {
        [FIGURE_LINES] = "x y low high; a block per panel and series",
        [FIGURE_HEAT] = "column row value; a block per panel, and one of its framed cells",
        [FIGURE_CELLS] = "column row number; a block per panel",
        [FIGURE_INTERVALS] = "row mean low high; a block per panel",
    };
    text_add(data, "# %s\n", columns[figure->kind]);
    for (size_t p = 0; p < figure->panels; p++) {
        const struct figure_panel *panel = &figure->panel[p];
        for (size_t s = 0; s < panel->series_count; s++)
            add_series(data, &panel->series[s]);
        if (figure->kind == FIGURE_HEAT || figure->kind == FIGURE_CELLS)
            add_cells(data, figure, panel);
        for (size_t i = 0; i < panel->intervals; i++) {
            text_add(data, "%zu ", i);
            add_number(data, panel->interval[i].mean, ' ');
            add_number(data, panel->interval[i].low, ' ');
            add_number(data, panel->interval[i].high, '\n');
        }
        text_add(data, figure->kind == FIGURE_INTERVALS ? "\n\n" : "");
    }
}
