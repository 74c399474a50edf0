/* Time and memory of the phases of a run. */
#include <math.h>
#include <string.h>

#include "results/report/section.h"

enum { ROWS_MOST = 60, PHASES_MOST = 16 };

enum { SECONDS, PER_ITERATION, IMAGES_PER_SECOND, NUMBERS };

struct phase {
    const char *name;
    double sum[NUMBERS], count[NUMBERS], peak;
};

struct costs {
    struct report *report;
    size_t count;
    struct phase phase[PHASES_MOST];
};

static struct phase *find_phase(struct costs *costs, const char *name)
{
    size_t i = 0;
    while (i < costs->count && strcmp(costs->phase[i].name, name) != 0)
        i++;
    if (i == PHASES_MOST)
        return NULL;
    if (i == costs->count)
        costs->phase[costs->count++] = (struct phase){.name = report_copy(costs->report, name)};
    return &costs->phase[i];
}

static void take_phase(void *context, struct statement *row)
{
    struct phase *phase = find_phase(context, statement_text(row, 0));
    if (phase == NULL)
        return;
    for (size_t i = 0; i < NUMBERS; i++) {
        double value = row_real(row, 1 + i);
        phase->sum[i] += isnan(value) ? 0 : value;
        phase->count[i] += !isnan(value);
    }
    double peak = row_real(row, 1 + NUMBERS);
    phase->peak = isnan(peak) ? phase->peak : fmax(phase->peak, peak);
}

static status add_rows(const struct section_call *call, const struct configuration *configuration, struct table *table,
                       struct error *error)
{
    struct costs *costs = report_take(call->report, 1, sizeof *costs);
    TRY(report_check(call->report, error));
    costs->report = call->report;
    for (size_t run = 0; run < configuration->used; run++)
        TRY(report_rows(call->report,
                        "SELECT phase, seconds, 1000 * seconds_per_iteration, images_per_second, peak_bytes FROM "
                        "throughput WHERE run = ?1",
                        configuration->run[run].run, take_phase, costs, error));
    for (size_t i = 0; i < costs->count; i++) {
        const struct phase *phase = &costs->phase[i];
        table_add_text(table, configuration->label);
        table_add_text(table, phase->name);
        for (size_t k = 0; k < NUMBERS; k++)
            table_add_real(table, phase->count[k] > 0 ? phase->sum[k] / phase->count[k] : (double)NAN);
        table_add_real(table, phase->peak > 0 ? phase->peak / (1 << 20) : (double)NAN);
    }
    return report_check(call->report, error);
}

status section_costs(const struct section_call *call, struct error *error)
{
    static const struct table_column columns[] = {
        {.title = "configuration"},          {.title = "phase"},
        {.title = "time, s", .decimals = 1}, {.title = "per iteration, ms", .decimals = 1},
        {.title = "images per second"},      {.title = "peak memory, MiB"},
    };
    struct table table = {0};
    const struct board *board = call->board;
    size_t rows = board->count < ROWS_MOST ? board->count : ROWS_MOST;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_add_column(&table, &columns[i]);
    status result = OK;
    for (size_t i = 0; i < rows && result == OK; i++)
        result = add_rows(call, board->configuration[i], &table, error);
    if (result == OK && table_rows(&table) > 0)
        html_table(call->page,
                   &(struct html_table){
                       .table = &table,
                       .name = section_name(call, "costs"),
                       .heads = 1,
                       .caption = report_format(
                           call->report,
                           "Per run, means over seeds; memory: the greatest of them, of the process on a processor and "
                           "of the device on a GPU. Runs side by side slow one another down.%s",
                           rows < board->count ? " The configurations with the highest Last." : "")});
    table_free(&table);
    return result;
}
