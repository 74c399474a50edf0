/* Policies, or whatever is compared, against one another: the comparison of mtil compare, a board at a time. */
#include "results/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "results/metrics.h"
#include "results/report/part.h"

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
                                        .metric_count = METRICS};
    wanted.filter.incidental = request->incidental;
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

/* --- Showing it --- */

/* SIZE_MAX: there is none. */
static size_t find_column(const struct table *table, const char *title)
{
    for (size_t i = 0; i < table->columns; i++)
        if (strcmp(table->column[i].title, title) == 0)
            return i;
    return SIZE_MAX;
}

static const char *context_prefix(const struct section_call *call, const struct table *table, size_t row)
{
    const struct table_cell *first = table_cell_at(table, row, 0);
    return first->kind == CELL_INTEGER ? report_format(call->report, "[%lld] ", (long long)first->integer) : "";
}

static double real_at(const struct table *table, size_t row, size_t column)
{
    const struct table_cell *cell = table_cell_at(table, row, column);
    return cell->kind == CELL_REAL ? cell->real : (double)NAN;
}

/* Adds the rows of a panel and returns how many there are, of which the first ones are drawn. */
static size_t add_panel(const struct section_call *call, const struct table *pairs, const char *name,
                        struct table *rows)
{
    size_t count = 0, metric = find_column(pairs, "metric"), difference = find_column(pairs, "difference");
    for (size_t i = 0; find_column(pairs, "dataset") == SIZE_MAX && i < table_rows(pairs); i++) {
        if (strcmp(table_cell_at(pairs, i, metric)->text, name) != 0 || isnan(real_at(pairs, i, difference)))
            continue;
        if (++count > FIGURE_ROWS)
            continue;
        table_add_text(rows, metric_find(name)->title);
        table_add_text(rows, report_format(call->report, "%s%s − %s", context_prefix(call, pairs, i),
                                           table_cell_at(pairs, i, metric - 1)->text,
                                           table_cell_at(pairs, i, metric - 2)->text));
        table_add_integer(rows, 0);
        table_add_real(rows, real_at(pairs, i, difference));
        table_add_real(rows, real_at(pairs, i, find_column(pairs, "low")));
        table_add_real(rows, real_at(pairs, i, find_column(pairs, "high")));
    }
    return count;
}

static status draw(const struct section_call *call, const struct table *pairs, struct error *error)
{
    static const char *const columns[] = {"panel", "series", "colour", "y", "low", "high"};
    struct table rows = {0};
    size_t count = 0;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_add_column(&rows, &(struct table_column){.title = columns[i]});
    for (size_t i = 0; i < METRICS; i++) {
        size_t shown = add_panel(call, pairs, metrics[i], &rows);
        count = shown > 0 ? shown : count; /* Transfer of a single task has none */
    }
    const char *cut =
        count > FIGURE_ROWS ? report_format(call->report, " The first %d of %zu pairs.", FIGURE_ROWS, count) : "";
    char *caption =
             path_format("Mean differences over the seeds that both have, with 95%% intervals (Student); right of the "
                         "dotted line the first is better. No interval where there is one seed.%s",
                         cut),
         *title = path_format("Differences by %s", call->report->comparison->by);
    char name[] = "comparison", words[] = "interval 2 zero", x[] = "difference, points";
    const struct question question = {
        .name = name, .title = title, .shown = {[ON_DRAW] = words, [ON_X] = x, [ON_CAPTION] = caption}};
    status result = OK;
    if (count > 0)
        result = part_figure(&(struct part){call, &question, &rows, 0, table_rows(&rows)}, error);
    table_free(&rows);
    free(caption);
    free(title);
    return result;
}

static status show_table(const struct section_call *call, enum comparison_part which, const char *name,
                         const char *caption, struct error *error)
{
    struct table table = {0};
    status result = compare_table(call->report->comparison, which, &table, error);
    if (result == OK && table_rows(&table) > 0)
        html_table(call->page,
                   &(struct html_table){
                       .table = &table, .name = section_name(call, name), .wrapped = true, .caption = caption});
    table_free(&table);
    return result;
}

static void add_words(const struct section_call *call, const struct table *words)
{
    bool open = table_rows(words) <= OPEN_MOST;
    if (!open)
        text_add(call->page, "<details><summary>In words</summary>\n");
    text_add(call->page, "<ul class=\"words\">\n");
    for (size_t i = 0; i < table_rows(words); i++) {
        text_add(call->page, "<li>");
        html_escape(call->page, context_prefix(call, words, i));
        html_escape(call->page, table_cell_at(words, i, words->columns - 1)->text);
        text_add(call->page, "</li>\n");
    }
    text_add(call->page, open ? "</ul>\n" : "</ul></details>\n");
}

/* Of all boards together, so they stand once. */
static void add_notes(const struct section_call *call, const struct table *notes)
{
    for (size_t i = 0; call->board->number == 1 && i < table_rows(notes); i++)
        html_paragraph(call->page, "note", report_format(call->report, "%s.", table_cell_at(notes, i, 0)->text));
}

/* Sentences, one by one. */
static status show_sentences(const struct section_call *call, enum comparison_part which,
                             void (*add)(const struct section_call *, const struct table *), struct error *error)
{
    struct table table = {0};
    status result = compare_table(call->report->comparison, which, &table, error);
    if (result == OK)
        add(call, &table);
    table_free(&table);
    return result;
}

static status show_contexts(const struct section_call *call, struct error *error)
{
    size_t contexts = call->report->comparison->contexts;
    if (contexts > OPEN_MOST)
        text_add(call->page, "<details><summary>%zu contexts</summary>\n", contexts);
    TRY(show_table(call, COMPARE_CONTEXTS, "contexts",
                   "Runs stand beside one another where they agree in these settings.", error));
    text_add(call->page, contexts > OPEN_MOST ? "</details>\n" : "");
    return OK;
}

static status show_numbers(const struct section_call *call, size_t pairs, struct error *error)
{
    struct comparison *all = call->report->comparison;
    struct table groups = {0};
    status result = compare_table(all, COMPARE_GROUPS, &groups, error);
    bool cut = table_rows(&groups) > ROWS_MOST || pairs > ROWS_MOST;
    table_free(&groups);
    TRY(result);
    TRY(show_table(call, COMPARE_OVERVIEW, "overview",
                   "In how many contexts one is above the other; supported: with p ≤ 0.05 after Holm's correction.",
                   error));
    all->rows_most = ROWS_MOST;
    TRY(show_sentences(call, COMPARE_WORDS, add_words, error));
    TRY(show_contexts(call, error));
    TRY(show_table(call, COMPARE_PAIRS, "comparison",
                   "Differences in points, over common seeds: mean, standard deviation, 95% interval (Student), median "
                   "(Hodges–Lehmann), effect size (Hedges' g of paired differences), p of the exact permutation test, "
                   "after Holm's correction, of Wilcoxon's exact test, of Student's.",
                   error));
    text_add(call->page, "<details><summary>Means of each group</summary>\n");
    TRY(show_table(call, COMPARE_GROUPS, "groups",
                   "Percent, over finished seeds, with standard deviation and 95% interval (Student).", error));
    text_add(call->page, "</details>\n");
    all->rows_most = 0;
    if (cut)
        html_paragraph(call->page, "note",
                       report_format(call->report, "Cut to %d rows each; mtil compare has all.", ROWS_MOST));
    return OK;
}

status section_comparison(const struct section_call *call, struct error *error)
{
    struct report *report = call->report;
    struct table pairs = {0};
    if (report->not_compared != NULL && call->board->number == 1)
        html_paragraph(call->page, "note", report->not_compared);
    if (report->comparison == NULL)
        return OK;
    TRY(comparison_show(call->report->comparison, call->board->run, call->board->runs, error));
    status result = compare_table(report->comparison, COMPARE_PAIRS, &pairs, error);
    size_t count = table_rows(&pairs);
    if (result == OK && count > 0)
        result = draw(call, &pairs, error);
    table_free(&pairs);
    if (result == OK && count > 0)
        result = show_numbers(call, count, error);
    if (result == OK && report->comparison->groups > 1)
        result = show_sentences(call, COMPARE_NOTES, add_notes, error);
    return result == OK ? report_check(report, error) : result;
}
