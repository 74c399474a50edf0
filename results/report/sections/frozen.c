/* Frozen experts per block over tasks: how fast the free ones are used up. */
#include <math.h>
#include <string.h>

#include "results/report/sections/experts.h"

/* Frozen experts of a configuration: [runs, blocks, tasks]. */
struct frozen {
    struct blocks blocks;
    size_t runs, tasks;
    double *value;
};

struct counting {
    const struct frozen *frozen;
    double *value; /* of the run, [blocks, tasks] */
};

static void take_count(void *context, struct statement *row)
{
    const struct counting *counting = context;
    const struct frozen *frozen = counting->frozen;
    size_t block = blocks_find(&frozen->blocks, statement_text(row, 1), statement_integer(row, 2));
    int64_t task = statement_integer(row, 0);
    if (block < frozen->blocks.count && task >= 0 && task < (int64_t)frozen->tasks)
        counting->value[block * frozen->tasks + (size_t)task] = row_real(row, 3);
}

/* A task that froze nothing new keeps the count; tasks yet to come have none. */
static void carry_on(const struct frozen *frozen, double *value)
{
    for (size_t block = 0; block < frozen->blocks.count; block++) {
        double count = 0;
        for (size_t task = 0; task < frozen->tasks; task++) {
            double *here = &value[block * frozen->tasks + task];
            count = isnan(*here) ? count : *here;
            *here = task < frozen->blocks.tasks[block] ? count : (double)NAN;
        }
    }
}

static status load_frozen(const struct section_call *call, const struct configuration *configuration,
                          struct frozen *frozen, struct error *error)
{
    TRY(blocks_load(call, configuration, &frozen->blocks, error));
    frozen->tasks = call->board->tasks;
    frozen->runs = configuration->used;
    size_t size = frozen->blocks.count * frozen->tasks;
    frozen->value = report_take(call->report, array_size(frozen->runs, size), sizeof *frozen->value);
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < frozen->runs * size; i++)
        frozen->value[i] = (double)NAN;
    for (size_t run = 0; run < frozen->runs; run++) {
        struct counting counting = {frozen, frozen->value + run * size};
        TRY(report_rows(call->report, "SELECT task, encoder, block, frozen FROM frozen_counts WHERE run = ?1",
                        configuration->run[run].run, take_count, &counting, error));
        carry_on(frozen, counting.value);
    }
    return OK;
}

/* --- Mean over the blocks of an encoder --- */

static double mean_of_encoder(const struct frozen *frozen, size_t run, const char *encoder, size_t task)
{
    double sum = 0;
    size_t count = 0;
    for (size_t block = 0; block < frozen->blocks.count; block++)
        if (strcmp(frozen->blocks.block[block].encoder, encoder) == 0) {
            sum += frozen->value[(run * frozen->blocks.count + block) * frozen->tasks + task];
            count++;
        }
    return count ? sum / (double)count : (double)NAN;
}

static struct figure_series series_of(struct report *report, const struct frozen *frozen, const char *encoder,
                                      size_t colour)
{
    size_t tasks = frozen->tasks;
    double *numbers = report_take(report, 4 * tasks, sizeof *numbers);
    double *runs = report_take(report, frozen->runs, sizeof *runs);
    if (numbers == NULL || runs == NULL)
        return (struct figure_series){0};
    for (size_t task = 0; task < tasks; task++) {
        for (size_t run = 0; run < frozen->runs; run++)
            runs[run] = mean_of_encoder(frozen, run, encoder, task);
        struct spread spread = spread_of(runs, frozen->runs, 1);
        numbers[task] = (double)task + 1;
        numbers[tasks + task] = spread.mean;
        numbers[2 * tasks + task] = spread.low;
        numbers[3 * tasks + task] = spread.high;
    }
    return (struct figure_series){.colour = colour,
                                  .points = tasks,
                                  .x = numbers,
                                  .y = numbers + tasks,
                                  .low = numbers + 2 * tasks,
                                  .high = numbers + 3 * tasks};
}

static status draw_means(const struct section_call *call, const struct frozen *frozen, struct error *error)
{
    static const char *const encoders[] = {"image", "text"};
    static const char *const titles[] = {"image encoder", "text encoder"};
    struct figure_panel panels[2];
    for (size_t p = 0; p < 2; p++) {
        struct figure_series *series = report_take(call->report, call->board->shown, sizeof *series);
        TRY(report_check(call->report, error));
        panels[p] = (struct figure_panel){.title = titles[p], .series = series, .mark = (double)NAN};
        for (size_t i = 0; i < call->board->shown; i++)
            if (frozen[i].blocks.count > 0)
                series[panels[p].series_count++] =
                    series_of(call->report, &frozen[i], encoders[p], call->board->configuration[i]->colour);
    }
    const char **legend = section_legend(call);
    TRY(report_check(call->report, error));
    struct figure figure = {.name = section_name(call, "frozen"),
                            .title = "Frozen experts per block",
                            .caption =
                                "Means over the blocks of an encoder and over seeds; bands from the least to the "
                                "greatest seed.",
                            .kind = FIGURE_LINES,
                            .x_title = "tasks trained",
                            .y_title = "frozen experts",
                            .panel = panels,
                            .panels = 2,
                            .legend = legend,
                            .legend_count = REPORT_BEST,
                            .low = 0,
                            .high = (double)NAN,
                            .decimals = 1,
                            .points = true};
    return section_figure(call, &figure, error);
}

/* --- Per block --- */

static status show_blocks(const struct section_call *call, const struct frozen *frozen, size_t number,
                          struct error *error)
{
    const struct configuration *configuration = call->board->configuration[number];
    size_t size = frozen->blocks.count * frozen->tasks;
    double *mean = report_take(call->report, size, sizeof *mean);
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < size; i++)
        mean[i] = spread_of(frozen->value + i, frozen->runs, size).mean;
    struct block_values values = {
        .name = section_name_of(call, "frozen", number + 1),
        .label = configuration->legend,
        .value_title = "frozen experts",
        .caption = report_format(call->report,
                                 "Frozen experts of each block after each task, of %zu; mean over %s, shaded from 0 to "
                                 "all.",
                                 frozen->blocks.experts, section_seeds(call, configuration)),
        .blocks = &frozen->blocks,
        .value = mean,
        .low = 0,
        .high = (double)frozen->blocks.experts,
        .decimals = 1};
    return blocks_show(call, &values, error);
}

status section_frozen(const struct section_call *call, struct error *error)
{
    struct frozen *frozen = report_take(call->report, call->board->shown, sizeof *frozen);
    bool any = false;
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < call->board->shown; i++) {
        TRY(load_frozen(call, call->board->configuration[i], &frozen[i], error));
        any |= frozen[i].blocks.count > 0;
    }
    if (!any)
        return OK;
    section_note_left_out(call);
    TRY(draw_means(call, frozen, error));
    section_choices(call, "Configuration");
    for (size_t i = 0; i < call->board->shown; i++)
        if (frozen[i].blocks.count > 0)
            TRY(show_blocks(call, &frozen[i], i, error));
    section_choices_end(call);
    return report_check(call->report, error);
}
