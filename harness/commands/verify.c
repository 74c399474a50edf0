/* mtil verify: checks the stored runs of a database. */
#include <string.h>

#include "core/file.h"
#include "core/json.h"
#include "core/scope.h"
#include "core/text.h"
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

static json_t *settings_of(const struct suite *suite)
{
    json_t *settings = json_object();
    struct setting_row *rows;
    size_t count;
    suite_settings(suite, &rows, &count);
    for (size_t i = 0; i < count; i++)
        json_object_set_new(settings, rows[i].key, json_string(rows[i].value != NULL ? rows[i].value : ""));
    suite_settings_free(rows, count);
    return settings;
}

/* A text that this program would write otherwise is of another state of it, whose keys, and so the hash, may be others. */
static void suite_said(void *context, const char *text, const char *program_version, struct text *answer)
{
    SCOPED(suite_destroy_at) struct suite *suite = NULL;
    SCOPED(json_decref_at) json_t *said = NULL;
    SCOPED(text_free) struct text why = {0};
    struct error cause;
    if (suite_parse(&suite, text, strlen(text), "suite_text", settings_sections, NULL, 0, &cause) == OK) {
        const char *hash = strcmp(suite_text(suite), text) == 0 ? suite_settings_hash(suite) : NULL;
        said = json_pack("{s:s*, s:o}", "hash", hash, "settings", settings_of(suite));
    } else if (strcmp(program_version, MTIL_VERSION) == 0) {
        text_add_visible(&why, cause.message);
        said = json_pack("{s:s}", "refused", why.data);
    }
    OWNED char *json = said != NULL ? json_dumps(said, 0) : NULL;
    if (json != NULL)
        text_add(answer, "%s", json);
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
    SCOPED(store_close_at) struct store *store = NULL;
    size_t given = call->argument_count > 0 && names_database(call->arguments[0]);
    const char *database = given > 0 ? call->arguments[0] : SETTINGS_DATABASE;
    TRY(run_list_read(&list, call->arguments + given, call->argument_count - given, error));
    TRY(store_open(&store, database, STORE_READ, error));
    SCOPED(verification_free)
    struct verification verification = {
        .runs = list.runs, .count = list.count, .cells = cells_of, .suite_said = suite_said};
    TRY(verify_database(store, &verification, error));
    return show(call, database, &verification, error);
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
