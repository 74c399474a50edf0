/* mtil compare: which of several policies is better, by how much, and whether the seeds support it. */
#include "results/compare.h"

#include <stdlib.h>
#include <string.h>

#include "core/scope.h"
#include "harness/commands/inputs/filter.h"
#include "harness/commands/output.h"
#include "harness/run/settings.h"

static const struct option options[] = {
    OPTION(LIST, "by", "policy",
           "settings to compare: policy, method, selector, setting, order, model, suite, row, or keys of suites such "
           "as merge.every"),
    OPTION(LIST, "metric", "transfer,average,last",
           "metrics; also forgetting, backward_transfer, forward_transfer, gain, zero_shot"),
    OPTION(TEXT, "baseline", NULL,
           "group that the others are compared with; all: every pair; default: none or zero-shot where there is one, "
           "else every pair"),
    OPTION(LIST, "only", NULL, "groups to compare; others are left out, also of the corrections"),
    OPTION(LIST, "factors", NULL,
           "two settings whose main effects and interaction are tested, in place of pairs: "
           "merge.policy,adapter.freeze_top_k"),
    OPTION(TEXT, "primary", NULL,
           "metric that is tested first; the others count only where all of its tests are supported"),
    OPTION_NUMBER(REAL, "equivalence", 1e-6, 100, NULL, "also test whether differences lie within X points of 0"),
    OPTION(BOOLEAN, "unpaired", "false",
           "do not pair runs by seed; default: pairs, since a seed fixes first weights and order of images"),
    OPTION(BOOLEAN, "per-dataset", "false", "also compare on each dataset"),
    OPTION(BOOLEAN, "per-image", "false", "also compare on each dataset and on each test image after the last task"),
    OPTION_NUMBER(REAL, "detect", 1e-6, 100, NULL,
                  "report how many seeds would detect a difference of X points, tested and corrected as here"),
    OPTION_NUMBER(INTEGER, "draws", 100, 1e6, "2000", "bootstrap samples over seeds and images"),
    OPTION_NUMBER(INTEGER, "draw-seed", 0, 1e15, "1", "seed of the bootstrap"),
    OPTION_ONE_OF("show", "all|groups|pairs|details|images|words", "all", "part of the answer to print"),
    OUTPUT_FORMAT_OPTION,
    FILTER_OPTIONS,
    {0},
};

/* The parts of the answer, in order. shown: the word of --show that selects the part, besides "all". */
static const struct part {
    enum comparison_part part;
    const char *name, *shown;
} parts[] = {
    {COMPARE_CONTEXTS, "contexts", ""},      {COMPARE_GROUPS, "groups", "groups"},
    {COMPARE_PAIRS, "pairs", "pairs"},       {COMPARE_DETAILS, "details", "details"},
    {COMPARE_PER_IMAGE, "images", "images"}, {COMPARE_DISCORDANCE, "discordance", "images"},
    {COMPARE_WORDS, "words", "words"},       {COMPARE_NOTES, "notes", "words"},
};

/* Sentences, in the last column, are printed as text, not as cells of a table; in LaTeX as comments. */
static void print_sentences(const struct command_call *call, const struct table *table, enum comparison_part part)
{
    const char *mark = strcmp(options_text(call->options, "format"), "latex") == 0 ? "% " : "";
    for (size_t row = 0; row < table_rows(table); row++) {
        fprintf(call->out, "%s%s", mark, part == COMPARE_NOTES ? "Note: " : "- ");
        output_words(call, table_cell_at(table, row, table->columns - 1)->text);
        fputs(part == COMPARE_NOTES ? ".\n" : "\n", call->out);
    }
}

static bool is_shown(const struct command_call *call, const struct part *part)
{
    const char *show = options_text(call->options, "show");
    return strcmp(show, "all") == 0 || strcmp(show, part->shown) == 0;
}

/* Parts that are not empty, separated by an empty line. */
static status print_part(const struct command_call *call, const struct comparison *comparison, const struct part *part,
                         bool *any, struct error *error)
{
    const char *format = options_text(call->options, "format");
    bool prose = strcmp(format, "csv") != 0;
    SCOPED(table_free) struct table table = {0};
    TRY(compare_table(comparison, part->part, &table, error));
    bool filled = table_rows(&table) > 0;
    if (filled && *any)
        fputc('\n', call->out);
    *any |= filled;
    if (filled && prose && (part->part == COMPARE_WORDS || part->part == COMPARE_NOTES))
        print_sentences(call, &table, part->part);
    else if (filled)
        output_table(call, &table);
    return OK;
}

static status print_parts(const struct command_call *call, const struct comparison *comparison, struct error *error)
{
    bool any = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (is_shown(call, &parts[i]))
            TRY(print_part(call, comparison, &parts[i], &any, error));
    if (any)
        return OK;
    SCOPED(table_free) struct table notes = {0}; /* the reason why there is no answer */
    TRY(compare_table(comparison, COMPARE_NOTES, &notes, error));
    for (size_t i = 0; i < table_rows(&notes); i++)
        log_info(call->log, "%s", table_cell_at(&notes, i, 0)->text);
    return OK;
}

/* One object with a list of rows per part, including empty parts. */
static status print_json(const struct command_call *call, const struct comparison *comparison, struct error *error)
{
    SCOPED(text_free) struct text text = {0};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        SCOPED(table_free) struct table table = {0};
        if (!is_shown(call, &parts[i]))
            continue;
        TRY(compare_table(comparison, parts[i].part, &table, error));
        text_add(&text, "%s\"%s\": ", text.size ? ",\n" : "{", parts[i].name);
        table_render(&table, TABLE_JSON, false, &text);
        while (text.size > 0 && text.data[text.size - 1] == '\n')
            text.data[--text.size] = 0;
    }
    fprintf(call->out, "%s}\n", text.data);
    return OK;
}

static status compare(const struct command_call *call, struct store *store, struct comparison_request *request,
                      struct error *error)
{
    SCOPED(comparison_free) struct comparison comparison = {0};
    TRY(compare_runs(store, request, &comparison, error));
    return strcmp(options_text(call->options, "format"), "json") == 0 ? print_json(call, &comparison, error)
                                                                      : print_parts(call, &comparison, error);
}

/* --show images implies --per-image. */
static enum comparison_detail read_detail(const struct options *given)
{
    if (options_boolean(given, "per-image") || strcmp(options_text(given, "show"), "images") == 0)
        return COMPARE_IMAGES;
    return options_boolean(given, "per-dataset") ? COMPARE_DATASETS : COMPARE_MEANS;
}

static status run(const struct command_call *call, struct error *error)
{
    const struct options *given = call->options;
    const char *database = call->argument_count > 0 ? call->arguments[0] : SETTINGS_DATABASE;
    struct comparison_request request = {
        .filter = filter_read(given),
        .baseline = options_text(given, "baseline"),
        .detail = read_detail(given),
        .detect = options_given(given, "detect") ? options_real(given, "detect") : 0,
        .primary = options_text(given, "primary"),
        .equivalence = options_given(given, "equivalence") ? options_real(given, "equivalence") : 0,
        .unpaired = options_boolean(given, "unpaired"),
        .factors = options_given(given, "factors"),
        .draws = (size_t)options_integer(given, "draws"),
        .seed = (uint64_t)options_integer(given, "draw-seed"),
    };
    if (request.factors && options_given(given, "by"))
        return error_set(error, ERROR_ARGUMENT,
                         "command line: compare: --factors names what --by would; expected one of them, found both");
    OWNED const char **by = options_list_items(given, request.factors ? "factors" : "by", &request.by_count),
                     **metrics = options_list_items(given, "metric", &request.metric_count),
                     **only = options_list_items(given, "only", &request.only_count);
    request.by = by;
    request.metrics = metrics;
    request.only = only;
    SCOPED(store_close_at) struct store *store = NULL;
    TRY(store_open_stoppable(&store, database, STORE_READ, call->stop, error));
    return compare(call, store, &request, error);
}

const struct command command_compare = {
    .name = "compare",
    .arguments = "[DATABASE]",
    .summary = "report which policy is better, by how much, and whether the seeds support it",
    .details =
        "Runs are grouped by the compared settings and paired by seed. Only runs that agree in every other\n"
        "setting are compared; where settings differ, each combination is a separate context, which the output\n"
        "names. To compare runs that differ in several settings, name all of them: --by policy,merge.every.\n"
        "DATABASE defaults to results.db.\n"
        "\n"
        "A question is two groups and a metric. It has one answer for all contexts that have both groups: the\n"
        "difference with its 95% interval, one exact permutation test, stratified by context, and a verdict\n"
        "after Holm's correction over all questions: better, worse, equal (--equivalence) or undecided.\n"
        "Differences in each context follow as details, without a correction. With few seeds in many contexts\n"
        "the verdict says what it takes for granted: p_seeds flips the signs of a seed in all contexts at once.\n"
        "\n"
        "Pairs are the default because a seed fixes the first weights and the order of images on both sides.\n"
        "Where results do not correlate over seeds (r), --unpaired has more power; choose it before you see the\n"
        "results. --factors A,B tests what each of two settings does on average over the other, and whether one\n"
        "depends on the other, within seeds. --per-dataset adds a row per dataset and, to the means, the interval\n"
        "of a bootstrap over seeds and datasets (tasks_low, tasks_high).\n"
        "\n"
        "The default baseline is none, or zero-shot CLIP, where every context has such a group, and a note\n"
        "says so; otherwise, or with --baseline all, every pair is compared. results/METRICS.md defines all\n"
        "columns.\n"
        "\n"
        "With --per-image: McNemar's exact test for each seed and dataset, which compares two trained models\n"
        "and not two policies, and 95% intervals of a bootstrap over seeds and images; if predictions were kept,\n"
        "also errors caused by a wrong router and errors among the classes, in percent of the images.\n",
    .example = "  mtil compare results.db --by policy --metric transfer,average,last --baseline none\n"
               "  mtil compare results.db --by merge.every --policy most_used --per-dataset\n"
               "  mtil compare results.db --by row --only none,most_used,random --baseline random\n"
               "  mtil compare results.db --primary last --equivalence 0.5 --detect 0.5\n"
               "  mtil compare results.db --factors merge.policy,adapter.freeze_top_k\n"
               "  mtil compare results.db --per-image --metric last --format json\n",
    .options = options,
    .most = 1,
    .run = run,
};
