/* mtil verify: checks the stored runs of a database. */
#include <string.h>

#include "core/file.h"
#include "core/scope.h"
#include "harness/commands/inputs/run_list.h"
#include "harness/commands/output.h"
#include "harness/methods/methods.h"
#include "harness/model/head.h"
#include "harness/run/settings.h"
#include "results/verify.h"

static const struct option verify_options[] = {OUTPUT_FORMAT_OPTION, {0}};

static const char *cells_of(const char *name)
{
    const struct method *method = NULL;
    const struct head *head;
    for (size_t i = 0; (method = method_at(i)) != NULL && strcmp(method->name, name) != 0;)
        i++;
    if (method != NULL && method->head != NULL && head_find(&head, method->head, NULL) == OK && !head->of_texts)
        return "trained";
    if (method != NULL && method->own != NULL)
        return "own";
    if (method != NULL && method->alone)
        return "diagonal";
    if (method != NULL && method->joint)
        return "last";
    bool learns = method == NULL || method->options != NULL || method->end_task != NULL ||
                  method_groups(method, NULL) != GROUPS_NONE;
    return learns ? "all" : "zero-shot";
}

/* The examples that people see of each kind of fault. */
enum { EXAMPLES = 3, WHAT = 1 };

/* Counts the faults of each kind, and takes the first of them. */
static void sum_up(const struct table *faults, struct table *kinds, struct table *examples)
{
    table_add_column(kinds, &(struct table_column){.title = "what"});
    table_add_column(kinds, &(struct table_column){.title = "faults"});
    for (size_t column = 0; column < faults->columns; column++)
        table_add_column(examples, &faults->column[column]);
    for (size_t row = 0; row < table_rows(faults); row++) {
        size_t kind = 0;
        const char *what = table_cell_at(faults, row, WHAT)->text;
        while (kind < table_rows(kinds) && strcmp(table_cell_at(kinds, kind, 0)->text, what) != 0)
            kind++;
        if (kind == table_rows(kinds)) {
            table_add_text(kinds, what);
            table_add_integer(kinds, 0);
        }
        if (kinds->cell[kind * kinds->columns + 1].integer++ < EXAMPLES)
            for (size_t column = 0; column < faults->columns; column++)
                table_add_cell(examples, table_cell_at(faults, row, column));
    }
}

/* People see a line per kind and some examples, programs and --verbose all of them. */
static void show_faults(const struct command_call *call, const struct table *faults)
{
    SCOPED(table_free) struct table kinds = {0}, examples = {0};
    if (strcmp(options_text(call->options, "format"), "table") != 0) {
        output_table(call, faults);
        return;
    }
    sum_up(faults, &kinds, &examples);
    output_table(call, &kinds);
    fputs("\n", call->out);
    output_table(call, call->verbose ? faults : &examples);
    if (!call->verbose && table_rows(&examples) < table_rows(faults))
        log_info(call->log, "%zu of %zu faults are shown; --verbose shows all", table_rows(&examples),
                 table_rows(faults));
}

static status show(const struct command_call *call, const char *database, const struct verification *verification,
                   struct error *error)
{
    size_t faults = table_rows(&verification->faults);
    if (faults > 0)
        show_faults(call, &verification->faults);
    else
        output_table(call, &verification->checked);
    if (verification->missing_files > 0)
        log_info(call->log, "%s: %zu file%s of its runs cannot be found any more, and %s not checked", database,
                 verification->missing_files, verification->missing_files == 1 ? "" : "s",
                 verification->missing_files == 1 ? "was" : "were");
    if (faults == 0)
        return OK;
    return error_set(error, ERROR_FORMAT, "%s: %zu thing%s not hold; see above", database, faults,
                     faults == 1 ? " does" : "s do");
}

/* Runs alone are those of the default database. */
static bool names_database(const char *word)
{
    return word[strspn(word, "0123456789,-")] != 0 || file_exists(word);
}

static status run_verify(const struct command_call *call, struct error *error)
{
    SCOPED(run_list_free) struct run_list list = {0};
    struct store *store;
    size_t given = call->argument_count > 0 && names_database(call->arguments[0]);
    const char *database = given > 0 ? call->arguments[0] : SETTINGS_DATABASE;
    TRY(run_list_read(&list, call->arguments + given, call->argument_count - given, error));
    TRY(store_open(&store, database, STORE_READ, error));
    struct verification verification = {
        .runs = list.runs, .count = list.count, .cells = cells_of, .incidental = settings_incidental};
    TRY(verify_database(store, &verification, error));
    TRY(show(call, database, &verification, error));
    verification_free(&verification);
    store_close(store);
    return OK;
}

const struct command command_verify = {
    .name = "verify",
    .arguments = "[DATABASE] [RUN...]",
    .summary = "check the consistency of a results database",
    .details =
        "Compares rows with one another, with the settings and with stored files, and tables and views with those of\n"
        "this program. Inconsistencies are counted by kind, with examples; all of them are rows with --verbose "
        "and\n"
        "in the other formats. The exit status is then 1. RUN is a number, a list or a range: 3, 1,4 or 5-9; by "
        "default\n"
        "all runs are checked. Nothing is written.\n"
        "Rows that were changed alike, such as an image's prediction, its bit and the count of right ones, contradict\n"
        "nothing: mtil rerun computes a run again and compares every number.\n",
    .example = "  mtil verify results.db\n  mtil verify results.db 5-9 --format json\n",
    .options = verify_options,
    .most = SIZE_MAX,
    .run = run_verify,
};
