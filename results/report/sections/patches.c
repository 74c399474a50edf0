/* Which patches go to which expert (RMoE, Figure 6): for each block, the patches of some test images in the colours of their
 * experts. */
#include <inttypes.h>
#include <math.h>

#include "results/report/sections/experts.h"

enum { OTHERS = REPORT_BEST - 1 }; /* the colour that experts share where there are more than colours */

/* The blocks of a run, or of one of its tasks. */
#define BLOCKS "SELECT 'image', block, 0, 1 FROM patch_experts WHERE run = ?1%s GROUP BY block ORDER BY block"

#define OF_BLOCK "FROM patch_usage WHERE run = ?1 AND task = %zu AND block = %" PRId64
static const char shape_sql[] =
    "SELECT count(DISTINCT image), max(y) + 1, max(x) + 1, count(DISTINCT expert) " OF_BLOCK;

/* The experts with the most patches come first. */
static const char cells_sql[] =
    "WITH own AS (SELECT * " OF_BLOCK "), ranks AS (SELECT expert, row_number() OVER (ORDER BY count(*) DESC, expert) "
    "- 1 AS place FROM own GROUP BY expert) "
    "SELECT dense_rank() OVER (ORDER BY image) - 1, y, x, expert, place, image, file FROM own JOIN ranks USING "
    "(expert)";

/* Of a task in a block. */
struct patches {
    struct report *report;
    size_t images, rows, columns, experts;
    struct figure_panel *panel; /* [images] */
    double *value;              /* [images, rows, columns] */
    uint8_t *colour;            /* likewise */
    const char *legend[REPORT_BEST];
};

static void take_shape(void *context, struct statement *row)
{
    struct patches *p = context;
    p->images = (size_t)statement_integer(row, 0);
    p->rows = (size_t)statement_integer(row, 1);
    p->columns = (size_t)statement_integer(row, 2);
    p->experts = (size_t)statement_integer(row, 3);
}

static void take_cell(void *context, struct statement *row)
{
    struct patches *p = context;
    size_t image = (size_t)statement_integer(row, 0), place = (size_t)statement_integer(row, 4),
           cell = (size_t)statement_integer(row, 1) * p->columns + (size_t)statement_integer(row, 2),
           at = image * p->rows * p->columns + cell;
    bool shared = p->experts > REPORT_BEST && place >= OTHERS;
    size_t colour = place < OTHERS ? place : OTHERS;
    p->value[at] = row_real(row, 3);
    p->colour[at] = (uint8_t)colour;
    if (p->legend[colour] == NULL)
        p->legend[colour] = shared ? report_format(p->report, "the other %zu experts", p->experts - OTHERS)
                                   : report_format(p->report, "expert %" PRId64, statement_integer(row, 3));
    if (p->panel[image].title == NULL)
        p->panel[image] = (struct figure_panel){
            .title = report_format(p->report, "%" PRId64 "  %s", statement_integer(row, 5), statement_text(row, 6)),
            .value = p->value + at - cell,
            .colour = p->colour + at - cell,
            .mark = (double)NAN};
}

static status load(const struct section_call *call, int64_t run, size_t task, int64_t block, struct patches *p,
                   struct error *error)
{
    struct report *report = call->report;
    *p = (struct patches){.report = report};
    TRY(report_rows(report, report_format(report, shape_sql, task, block), run, take_shape, p, error));
    size_t cells = p->images * p->rows * p->columns;
    p->panel = report_take(report, p->images, sizeof *p->panel);
    p->value = report_take(report, cells, sizeof *p->value);
    p->colour = report_take(report, cells, sizeof *p->colour);
    TRY(report_check(report, error));
    for (size_t i = 0; i < cells; i++)
        p->value[i] = (double)NAN;
    return report_rows(report, report_format(report, cells_sql, task, block), run, take_cell, p, error);
}

static status draw(const struct section_call *call, const char *of, size_t task, int64_t block, const struct patches *p,
                   struct error *error)
{
    struct report *report = call->report;
    struct figure figure = {
        .name = report_format(report, "%s-%" PRId64, section_name_of(call, "patches", task + 1), block),
        .title = report_format(report, "Experts of patches of %s in block %" PRId64, call->board->names[task], block),
        .caption =
            report_format(report,
                          "%s: the expert that each patch chooses first in the last test. A panel per test image, "
                          "by its place in the list and its file; experts in the order of their patches. Experts of "
                          "two blocks have nothing to do with one another.",
                          of),
        .kind = FIGURE_CELLS,
        .panel = p->panel,
        .panels = p->images,
        .legend = (const char **)p->legend,
        .legend_count = REPORT_BEST,
        .columns = p->columns,
        .rows = p->rows};
    TRY(report_check(report, error));
    return section_figure(call, &figure, error);
}

static status show_task(const struct section_call *call, const struct configuration *configuration, size_t task,
                        struct error *error)
{
    struct report *report = call->report;
    struct arena_mark mark = arena_mark(&report->arena);
    struct blocks *blocks = report_take(report, 1, sizeof *blocks);
    struct patches patches;
    int64_t run = configuration->run[0].run;
    const char *of = report_format(report, "%s, seed %" PRId64, configuration->legend, configuration->run[0].seed),
               *only = report_format(report, " AND task = %zu", task);
    TRY(report_check(report, error));
    TRY(blocks_load_from(call, run, report_format(report, BLOCKS, only), blocks, error));
    if (blocks->count > 0)
        section_choice(call, call->board->names[task]);
    for (size_t i = 0; i < blocks->count; i++) {
        TRY(load(call, run, task, blocks->block[i].block, &patches, error));
        TRY(draw(call, of, task, blocks->block[i].block, &patches, error));
    }
    if (blocks->count > 0)
        section_choice_end(call);
    arena_release(&report->arena, mark);
    return OK;
}

/* Of the best configuration that has any. */
status section_patches(const struct section_call *call, struct error *error)
{
    struct blocks *blocks = report_take(call->report, 1, sizeof *blocks);
    const char *sql = report_format(call->report, BLOCKS, "");
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < call->board->shown && blocks->count == 0; i++) {
        const struct configuration *configuration = call->board->configuration[i];
        TRY(blocks_load_from(call, configuration->run[0].run, sql, blocks, error));
        if (blocks->count == 0)
            continue;
        section_choices(call, "Task");
        for (size_t task = 0; task < call->board->tasks; task++)
            if (section_wants_task(call, task))
                TRY(show_task(call, configuration, task, error));
        section_choices_end(call);
    }
    return OK;
}
