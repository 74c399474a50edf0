/* Policies, or whatever is compared, against one another: the comparison of mtil compare, a board at a time. */
#include "results/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>

#include "results/report/section.h"

#define LEFT_OUT SIZE_MAX

enum { METRICS = 3, FIGURE_ROWS = 12, OPEN_MOST = 9, ROWS_MOST = 600 };

static const char *const metrics[METRICS] = {"transfer", "average", "last"};

/* --- Comparing, once for all boards --- */

/* What a user can mend is an error; a suite's text that cannot be read leaves the rest of the page as it is. */
status report_compare(struct report *report, struct error *error)
{
    const struct report_request *request = report->request;
    struct comparison_request wanted = {.filter = request->filter,
                                        .by = request->by,
                                        .by_count = request->by_count,
                                        .metrics = metrics,
                                        .metric_count = METRICS,
                                        .incidental = request->incidental};
    if (request->by_count == 0 || !report->complete)
        return OK;
    report->comparison = report_take(report, 1, sizeof *report->comparison);
    TRY(report_check(report, error));
    status result = compare_runs(report->store, &wanted, report->comparison, error);
    if (result == OK)
        return OK;
    report->comparison = NULL;
    if (result != ERROR_FORMAT)
        return result;
    report->not_compared = report_format(report, "Not compared: %s.", error->message);
    return report_check(report, error);
}

/* --- What of it belongs to a board --- */

static bool is_on_board(const struct board *board, int64_t run)
{
    for (size_t i = 0; i < board->runs; i++)
        if (board->run[i] == run)
            return true;
    return false;
}

/* Numbers of contexts and groups among those that are kept. */
struct kept {
    size_t *context, *group;
};

static void keep_groups(const struct section_call *call, const struct comparison *all, struct comparison *part,
                        const struct kept *kept)
{
    for (size_t i = 0; i < all->context_count; i++)
        kept->context[i] = LEFT_OUT;
    for (size_t i = 0; i < all->group_count; i++) {
        size_t *context = &kept->context[all->group[i].context];
        kept->group[i] = LEFT_OUT;
        if (*context == LEFT_OUT && is_on_board(call->board, all->group[i].run[0])) {
            part->context[part->context_count] = all->context[all->group[i].context];
            *context = part->context_count++;
        }
        if (*context == LEFT_OUT)
            continue;
        part->group[part->group_count] = all->group[i];
        part->group[part->group_count].context = *context;
        kept->group[i] = part->group_count++;
    }
}

static void keep_rows(const struct comparison *all, struct comparison *part, const struct kept *kept)
{
    for (size_t i = 0; i < all->sample_count; i++)
        if (kept->group[all->sample[i].group] != LEFT_OUT) {
            part->sample[part->sample_count] = all->sample[i];
            part->sample[part->sample_count++].group = kept->group[all->sample[i].group];
        }
    for (size_t i = 0; i < all->pair_count; i++)
        if (kept->group[all->pair[i].baseline] != LEFT_OUT && kept->group[all->pair[i].other] != LEFT_OUT) {
            struct comparison_pair *pair = &part->pair[part->pair_count++];
            *pair = all->pair[i];
            pair->baseline = kept->group[all->pair[i].baseline];
            pair->other = kept->group[all->pair[i].other];
        }
}

/* A comparison that borrows from the whole one. */
static status take_part(const struct section_call *call, struct comparison *part, struct error *error)
{
    struct report *report = call->report;
    const struct comparison *all = report->comparison;
    struct kept kept = {.context = report_take(report, all->context_count, sizeof(size_t)),
                        .group = report_take(report, all->group_count, sizeof(size_t))};
    *part = (struct comparison){.by = all->by,
                                .dataset = all->dataset,
                                .dataset_count = all->dataset_count,
                                .context = report_take(report, all->context_count, sizeof *part->context),
                                .group = report_take(report, all->group_count, sizeof *part->group),
                                .sample = report_take(report, all->sample_count, sizeof *part->sample),
                                .pair = report_take(report, all->pair_count, sizeof *part->pair)};
    TRY(report_check(report, error));
    keep_groups(call, all, part, &kept);
    keep_rows(all, part, &kept);
    if (part->group_count == all->group_count) { /* and so all numbers are as they were */
        part->overview = all->overview;
        part->overview_count = all->overview_count;
    }
    return OK;
}

/* --- Showing it --- */

static const char *context_prefix(const struct section_call *call, const struct comparison *part,
                                  const struct comparison_pair *pair)
{
    return part->context_count > 1 ? report_format(call->report, "[%zu] ", part->group[pair->other].context + 1) : "";
}

static size_t fill_panel(const struct section_call *call, const struct comparison *part, const struct metric *metric,
                         struct figure_panel *panel, struct figure_interval *rows)
{
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < part->pair_count; i++) {
        const struct comparison_pair *pair = &part->pair[i];
        if (pair->metric != metric || pair->dataset != NULL || pair->n == 0)
            continue;
        if (++count > FIGURE_ROWS)
            continue;
        rows[shown++] = (struct figure_interval){
            .label = report_format(call->report, "%s%s − %s", context_prefix(call, part, pair),
                                   part->group[pair->other].name, part->group[pair->baseline].name),
            .mean = pair->difference,
            .low = pair->low,
            .high = pair->high};
    }
    *panel = (struct figure_panel){.title = metric->title, .interval = rows, .intervals = shown};
    return count;
}

static status draw(const struct section_call *call, const struct comparison *part, struct error *error)
{
    struct figure_panel panels[METRICS];
    struct figure_interval *rows = report_take(call->report, (size_t)METRICS * FIGURE_ROWS, sizeof *rows);
    size_t count = 0, shown = 0;
    TRY(report_check(call->report, error));
    for (size_t i = 0; i < METRICS; i++) {
        size_t pairs = fill_panel(call, part, metric_find(metrics[i]), &panels[shown], rows + shown * FIGURE_ROWS);
        if (pairs == 0) /* Transfer of a single task */
            continue;
        count = pairs;
        shown++;
    }
    if (shown == 0)
        return OK;
    const char *cut =
        count > FIGURE_ROWS ? report_format(call->report, " The first %d of %zu pairs.", FIGURE_ROWS, count) : "";
    struct figure figure = {
        .name = section_name(call, "comparison"),
        .title = report_format(call->report, "Differences by %s", part->by),
        .caption = report_format(call->report,
                                 "Mean differences over the seeds that both have, with 95%% intervals (Student); right "
                                 "of the dotted line the first is better. No interval where there is one seed.%s",
                                 cut),
        .kind = FIGURE_INTERVALS,
        .x_title = "difference, points",
        .panel = panels,
        .panels = shown,
        .low = (double)NAN,
        .high = (double)NAN,
        .decimals = 2,
        .zero = true};
    TRY(report_check(call->report, error));
    return section_figure(call, &figure, error);
}

static status show_table(const struct section_call *call, const struct comparison *part, enum comparison_part which,
                         const char *name, const char *caption, struct error *error)
{
    struct table table = {0};
    status result = compare_table(part, which, &table, error);
    if (result == OK && table_rows(&table) > 0)
        html_table(call->page,
                   &(struct html_table){
                       .table = &table, .name = section_name(call, name), .wrapped = true, .caption = caption});
    table_free(&table);
    return result;
}

static void show_words(const struct section_call *call, const struct comparison *part)
{
    bool open = part->pair_count <= OPEN_MOST;
    if (!open)
        text_add(call->page, "<details><summary>In words</summary>\n");
    text_add(call->page, "<ul class=\"words\">\n");
    for (size_t i = 0; i < part->pair_count; i++) {
        text_add(call->page, "<li>");
        html_escape(call->page, context_prefix(call, part, &part->pair[i]));
        html_escape(call->page, part->pair[i].words);
        text_add(call->page, "</li>\n");
    }
    text_add(call->page, open ? "</ul>\n" : "</ul></details>\n");
}

/* Of all boards together, so they stand once. */
static void show_notes(const struct section_call *call)
{
    const struct comparison *all = call->report->comparison;
    for (size_t i = 0; call->board->number == 1 && i < all->note_count; i++)
        html_paragraph(call->page, "note", report_format(call->report, "%s.", all->note[i]));
}

static status show_contexts(const struct section_call *call, const struct comparison *part, struct error *error)
{
    bool open = part->context_count <= OPEN_MOST;
    if (part->context_count < 2)
        return OK;
    if (!open)
        text_add(call->page, "<details><summary>%zu contexts</summary>\n", part->context_count);
    TRY(show_table(call, part, COMPARE_CONTEXTS, "contexts",
                   "Runs stand beside one another where they agree in these settings.", error));
    text_add(call->page, open ? "" : "</details>\n");
    return OK;
}

static status show_numbers(const struct section_call *call, struct comparison *part, struct error *error)
{
    bool cut = part->sample_count > ROWS_MOST || part->pair_count > ROWS_MOST;
    part->sample_count = part->sample_count < ROWS_MOST ? part->sample_count : ROWS_MOST;
    part->pair_count = part->pair_count < ROWS_MOST ? part->pair_count : ROWS_MOST;
    TRY(show_table(call, part, COMPARE_OVERVIEW, "overview",
                   "In how many contexts one is above the other; supported: with p ≤ 0.05 after Holm's correction.",
                   error));
    show_words(call, part);
    TRY(show_contexts(call, part, error));
    TRY(show_table(call, part, COMPARE_PAIRS, "comparison",
                   "Differences in points, over common seeds: mean, standard deviation, 95% interval (Student), median "
                   "(Hodges–Lehmann), effect size (Hedges' g of paired differences), p of the exact permutation test, "
                   "after Holm's correction, of Wilcoxon's exact test, of Student's.",
                   error));
    text_add(call->page, "<details><summary>Means of each group</summary>\n");
    TRY(show_table(call, part, COMPARE_GROUPS, "groups",
                   "Percent, over finished seeds, with standard deviation and 95% interval (Student).", error));
    text_add(call->page, "</details>\n");
    if (cut)
        html_paragraph(call->page, "note",
                       report_format(call->report, "Cut to %d rows each; mtil compare has all.", ROWS_MOST));
    return OK;
}

status section_comparison(const struct section_call *call, struct error *error)
{
    struct report *report = call->report;
    struct comparison part;
    if (report->not_compared != NULL && call->board->number == 1)
        html_paragraph(call->page, "note", report->not_compared);
    if (report->comparison == NULL)
        return OK;
    TRY(take_part(call, &part, error));
    if (part.pair_count > 0) {
        TRY(draw(call, &part, error));
        TRY(show_numbers(call, &part, error));
    }
    if (part.group_count > 1)
        show_notes(call);
    return report_check(report, error);
}
