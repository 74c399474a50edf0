/* Which experts are used: how many of each block really, and each of them in one run. */
#include <inttypes.h>
#include <math.h>

#include "results/report/sections/experts.h"

enum { DETAILED_MOST = 2 }; /* configurations whose experts are shown one by one */

/* --- The effective number of experts --- */

/* Shares p of a block and task, summed up: −Σ p ln p. */
struct entropies {
    const struct blocks *blocks;
    size_t tasks;
    double *entropy; /* [blocks, tasks] */
    bool *known;
};

static void take_share(void *context, struct statement *row)
{
    struct entropies *entropies = context;
    size_t block = blocks_find(entropies->blocks, statement_text(row, 1), statement_integer(row, 2));
    int64_t task = statement_integer(row, 0);
    double share = row_real(row, 3) / 100;
    if (block == entropies->blocks->count || task < 0 || task >= (int64_t)entropies->tasks || isnan(share))
        return;
    size_t at = block * entropies->tasks + (size_t)task;
    entropies->known[at] = true;
    entropies->entropy[at] -= share > 0 ? share * log(share) : 0;
}

/* Adds exp of the entropies of a run to sum. */
static status add_run(const struct section_call *call, const struct blocks *blocks, int64_t run, double *sum,
                      double *count, struct error *error)
{
    size_t size = blocks->count * call->board->tasks;
    struct arena_mark mark = arena_mark(&call->report->arena);
    struct entropies entropies = {.blocks = blocks, .tasks = call->board->tasks};
    entropies.entropy = report_take(call->report, size, sizeof *entropies.entropy);
    entropies.known = report_take(call->report, size, sizeof *entropies.known);
    TRY(report_check(call->report, error));
    TRY(report_rows(call->report, "SELECT task, encoder, block, share FROM expert_usage WHERE run = ?1", run,
                    take_share, &entropies, error));
    for (size_t i = 0; i < size; i++) {
        sum[i] += entropies.known[i] ? exp(entropies.entropy[i]) : 0;
        count[i] += entropies.known[i];
    }
    arena_release(&call->report->arena, mark);
    return OK;
}

static status show_effective(const struct section_call *call, const struct blocks *blocks, size_t number,
                             struct error *error)
{
    const struct configuration *configuration = call->board->configuration[number];
    size_t size = blocks->count * call->board->tasks;
    double *mean = report_take(call->report, size, sizeof *mean),
           *count = report_take(call->report, size, sizeof *count);
    TRY(report_check(call->report, error));
    for (size_t run = 0; run < configuration->used; run++)
        TRY(add_run(call, blocks, configuration->run[run].run, mean, count, error));
    for (size_t i = 0; i < size; i++)
        mean[i] = count[i] > 0 ? mean[i] / count[i] : (double)NAN;
    struct block_values values = {
        .name = section_name_of(call, "experts", number + 1),
        .label = configuration->legend,
        .value_title = "effective experts",
        .caption =
            report_format(call->report,
                          "Effective number of experts of each block in each task, of %zu: exp of the entropy of "
                          "how often each was chosen; mean over %s.",
                          blocks->experts, section_seeds(call, configuration)),
        .blocks = blocks,
        .value = mean,
        .low = 1,
        .high = (double)blocks->experts,
        .decimals = 1};
    return blocks_show(call, &values, error);
}

/* --- One run's experts --- */

struct usage {
    const struct blocks *blocks;
    size_t tasks;
    double *share; /* [blocks, experts, tasks] */
    bool *frozen;
};

static void take_usage(void *context, struct statement *row)
{
    struct usage *usage = context;
    size_t block = blocks_find(usage->blocks, statement_text(row, 1), statement_integer(row, 2));
    int64_t task = statement_integer(row, 0), expert = statement_integer(row, 3);
    if (block == usage->blocks->count || task < 0 || task >= (int64_t)usage->tasks || expert < 0 ||
        expert >= (int64_t)usage->blocks->experts)
        return;
    size_t at = (block * usage->blocks->experts + (size_t)expert) * usage->tasks + (size_t)task;
    usage->share[at] = row_real(row, 4);
    usage->frozen[at] = statement_integer(row, 5) != 0;
}

static status load_usage(const struct section_call *call, const struct blocks *blocks, int64_t run, struct usage *usage,
                         struct error *error)
{
    size_t size = blocks->count * blocks->experts * call->board->tasks;
    *usage = (struct usage){.blocks = blocks, .tasks = call->board->tasks};
    usage->share = report_take(call->report, size, sizeof *usage->share);
    usage->frozen = report_take(call->report, size, sizeof *usage->frozen);
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < size; i++)
        usage->share[i] = (double)NAN;
    return report_rows(call->report,
                       "SELECT task, encoder, block, expert, share, frozen FROM expert_usage WHERE run = ?1", run,
                       take_usage, usage, error);
}

static const char **numbers(struct report *report, size_t count, size_t first)
{
    const char **label = report_take(report, count, sizeof *label);
    for (size_t i = 0; label != NULL && i < count; i++)
        label[i] = report_format(report, "%zu", first + i);
    return label;
}

static status show_usage(const struct section_call *call, const struct blocks *blocks, size_t number,
                         struct error *error)
{
    const struct configuration *configuration = call->board->configuration[number];
    struct usage usage;
    TRY(load_usage(call, blocks, configuration->run[0].run, &usage, error));
    struct figure_panel *panels = report_take(call->report, blocks->count, sizeof *panels);
    TRY(report_check(call->report, error));
    size_t size = blocks->experts * call->board->tasks;
    for (size_t i = 0; i < blocks->count; i++)
        panels[i] = (struct figure_panel){.title = blocks->label[i],
                                          .value = usage.share + i * size,
                                          .framed = usage.frozen + i * size,
                                          .mark = (double)NAN};
    struct figure figure = {
        .name = section_name_of(call, "usage", number + 1),
        .title = report_format(call->report, "%s, seed %" PRId64, configuration->legend, configuration->run[0].seed),
        .caption = "How often each expert was chosen. A panel per block, a row per expert, a column per task. Dots: "
                   "frozen once the task has ended. Experts "
                   "of different seeds have nothing to do with one another, so this is one run.",
        .kind = FIGURE_HEAT,
        .x_title = "task",
        .y_title = "expert",
        .value_title = "share, %",
        .panel = panels,
        .panels = blocks->count,
        .x_label = numbers(call->report, call->board->tasks, 1),
        .columns = call->board->tasks,
        .y_label = numbers(call->report, blocks->experts, 0),
        .rows = blocks->experts,
        .low = 0,
        .high = (double)NAN,
        .decimals = 0};
    TRY(report_check(call->report, error));
    return section_figure(call, &figure, error);
}

status section_experts(const struct section_call *call, struct error *error)
{
    const struct board *board = call->board;
    struct blocks *blocks = report_take(call->report, board->shown, sizeof *blocks);
    size_t with_experts = 0;
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < board->shown; i++) {
        TRY(blocks_load(call, board->configuration[i], &blocks[i], error));
        with_experts += blocks[i].count > 0;
    }
    if (with_experts == 0)
        return OK;
    section_note_left_out(call);
    section_choices(call, "Configuration");
    for (size_t i = 0; i < board->shown; i++)
        if (blocks[i].count > 0)
            TRY(show_effective(call, &blocks[i], i, error));
    section_choices_end(call);
    for (size_t i = 0, shown = 0; i < board->shown && shown < DETAILED_MOST; i++)
        if (blocks[i].count > 0) {
            TRY(show_usage(call, &blocks[i], i, error));
            shown++;
        }
    if (with_experts > DETAILED_MOST)
        html_paragraph(
            call->page, "note",
            report_format(call->report, "Experts one by one are shown of the best %d configurations.", DETAILED_MOST));
    return report_check(call->report, error);
}
