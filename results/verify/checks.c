/* Conditions between rows: the questions of results/checks/, each row of whose answers is a fault. For them, temporary
 * tables: facts (a column per setting), plan (plan.sql). */
#include "core/embedded.h"
#include "core/text.h"
#include "results/query/question.h"
#include "results/verify/internal.h"

EMBEDDED_FILES(check_files);
EMBEDDED_FILES(check_tables);

enum { FAULTS_MOST = 1000 }; /* most faults named per check */

/* The columns of facts behind run, trained, joint (one training on all tasks) and alone (a model per task). */
static const char *const keys[] = {"method.name",
                                   "model.weights",
                                   "data.order",
                                   "data.order_name",
                                   "data.split_by",
                                   "data.parts",
                                   "data.first",
                                   "data.shots",
                                   "evaluation.label_space",
                                   "evaluation.per_image",
                                   "selector.kind",
                                   "selector.decision",
                                   "selector.threshold",
                                   "adapter.experts",
                                   "adapter.top_k",
                                   "adapter.routing",
                                   "adapter.capacity",
                                   "adapter.freeze",
                                   "adapter.freeze_top_k",
                                   "merge.policy",
                                   "merge.schedule",
                                   "merge.every",
                                   "merge.analysis",
                                   "training.iterations",
                                   "training.epochs",
                                   "training.batch",
                                   "training.warmup",
                                   "training.warmup_epochs",
                                   "training.learning_rate",
                                   "training.reference_iterations",
                                   "training.on_nan",
                                   "training.loss",
                                   "run.gpus",
                                   "run.backend",
                                   "run.precision",
                                   "run.seeds",
                                   "run.log_every",
                                   "run.checkpoints"};

static void has_cells(void *context, const char *method, const char *which, struct text *answer)
{
    const struct verification *asked = context;
    if (asked->cells != NULL && asked->cells(method) == (*which == 'l' ? CELLS_LAST : CELLS_DIAGONAL))
        text_add(answer, "yes");
}

static status make_tables(const struct verifying *v, struct error *error)
{
    struct text sql = {0};
    TRY(database_add_function(v->store->database, "has_cells", has_cells, v->verification, error));
    text_add(&sql, "CREATE TEMP TABLE facts (run INTEGER PRIMARY KEY, trained, joint, alone");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        text_add(&sql, ", \"%s\"", keys[i]);
    text_add(&sql, "); INSERT INTO facts SELECT run, trainable_parameters IS NOT NULL, "
                   "has_cells(method, 'last') IS NOT NULL, has_cells(method, 'diagonal') IS NOT NULL");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        text_add(&sql, ", (SELECT value FROM settings WHERE settings.run = runs.run AND key = '%s')", keys[i]);
    text_add(&sql, " FROM runs; %s", (const char *)check_tables[0].data);
    status result = sql.failed ? error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(v->store))
                               : database_execute(v->store->database, sql.data, error);
    text_free(&sql);
    return result;
}

static status run_check(const struct verifying *v, const char *sql, struct error *error)
{
    enum { WHAT, RUN, WHERE, EXPECTED, FOUND };
    struct statement *rows;
    TRY(statement_open(&rows, v->store->database, sql, error));
    status result;
    int named = 0;
    for (bool row; (result = statement_step(rows, &row, error)) == OK && row && named < FAULTS_MOST;)
        named += verify_fault(v, &(struct verify_fault){.run = statement_integer(rows, RUN),
                                                        .what = statement_text(rows, WHAT),
                                                        .where = statement_text(rows, WHERE),
                                                        .expected = statement_text(rows, EXPECTED),
                                                        .found = statement_text(rows, FOUND)});
    statement_close(rows);
    return result;
}

status verify_checks(const struct verifying *v, struct error *error)
{
    int64_t count = 0;
    TRY(make_tables(v, error));
    for (const struct embedded_file *file = check_files; file->name != NULL; file++, count++) {
        struct question check;
        TRY(question_parse(&check, file->name, file->name, (const char *)file->data, error));
        status result = check.expects_none ? run_check(v, check.answer, error)
                                           : error_set(error, ERROR_ARGUMENT, "expected \"-- expect: no rows\"");
        question_free(&check);
        if (result != OK)
            return error_context(error, "%s", file->name);
    }
    verify_checked(v, "checks", count);
    return OK;
}
