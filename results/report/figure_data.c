/* What a figure draws, as numbers in columns: for whoever draws it in another way. */
#include <math.h>

#include "results/report/figure.h"

static void add_row(struct text *data, double first, double second, double third, double fourth)
{
    const double row[] = {first, second, third, fourth};
    for (size_t i = 0; i < 4; i++)
        if (isnan(row[i]))
            text_add(data, i < 3 ? "NaN " : "NaN\n");
        else
            text_add(data, i < 3 ? "%.17g " : "%.17g\n", row[i]);
}

static void add_panel(struct text *data, const struct figure *figure, const struct figure_panel *panel)
{
    for (size_t s = 0; s < panel->series_count; s++) {
        const struct figure_series *series = &panel->series[s];
        text_add(data, s > 0 ? "\n\n" : "");
        for (size_t i = 0; i < series->points; i++)
            add_row(data, series->x[i], series->y[i], series->low ? series->low[i] : (double)NAN,
                    series->low ? series->high[i] : (double)NAN);
    }
    for (size_t i = 0; panel->value != NULL && i < figure->rows * figure->columns; i++) {
        size_t row = i / figure->columns, column = i % figure->columns;
        add_row(data, (double)column, (double)row, panel->value[i], panel->framed != NULL && panel->framed[i]);
    }
    for (size_t i = 0; i < panel->intervals; i++)
        add_row(data, (double)i, panel->interval[i].mean, panel->interval[i].low, panel->interval[i].high);
}

void figure_data(struct text *data, const struct figure *figure)
{
    static const char *const columns[] = {
        [FIGURE_LINES] = "x y low high; a block per panel and series",
        [FIGURE_HEAT] = "column row value framed; a block per panel",
        [FIGURE_CELLS] = "column row number framed; a block per panel",
        [FIGURE_INTERVALS] = "row mean low high; a block per panel",
    };
    text_add(data, "# %s\n", columns[figure->kind]);
    for (size_t p = 0; p < figure->panels; p++) {
        add_panel(data, figure, &figure->panel[p]);
        text_add(data, "\n\n");
    }
}
