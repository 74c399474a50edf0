#include "results/export/tensorboard.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_group.h"
#include "results/export/event_file.h"
#include "results/query/internal.h"
#include "results/store/setting_values.h"
#include "results/store/store_internal.h"

#define CONFIGURATION_DIGITS 12 /* of the suite's digest */

/* A run on its way into its file. */
struct run_export {
    struct store *store;
    int64_t run, tasks;
    double started;                /* seconds since 1970 */
    const struct table *differing; /* differing_sql of all chosen runs */
    struct event_file file;
    size_t values;
};

static void add_scalar(struct run_export *out, double clock, int64_t step, const char *tag, double value)
{
    event_file_scalar(&out->file, &(struct event_time){.clock = out->started + clock, .step = step}, tag, value);
    out->values++;
}

/* Calls take for each row of sql, in which ?1 is the run. */
typedef void take_row(struct run_export *out, struct statement *row, void *context);

static status each_row(struct run_export *out, const char *sql, take_row *take, void *context, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, out->store->database, sql, error));
    bool row = true;
    status result = statement_bind(statement, VALUES(value_integer(out->run)), error);
    while (result == OK && (result = statement_step(statement, &row, error)) == OK && row)
        take(out, statement, context);
    statement_close(statement);
    return result;
}

/* --- Numbers --- */

static double real(struct statement *row, size_t column)
{
    struct value value = statement_value(row, column);
    return value.kind == VALUE_REAL ? value.real : value.kind == VALUE_INTEGER ? (double)value.integer : (double)NAN;
}

/* Iterations are counted through all tasks; before: iterations of earlier tasks. */
struct place {
    int64_t task, iteration, before;
};

static const char steps_sql[] =
    "SELECT task, iteration, loss, learning_rate, clock FROM ("
    " SELECT task, iteration, is_step, loss, learning_rate, sum(seconds) OVER (ORDER BY task, iteration, is_step "
    "ROWS UNBOUNDED PRECEDING) AS clock FROM ("
    "  SELECT task, iteration, 0 AS is_step, seconds, NULL AS loss, NULL AS learning_rate FROM timings WHERE run = ?1"
    "  UNION ALL SELECT task, iteration, 1, 0.0, loss, learning_rate FROM steps WHERE run = ?1)) "
    "WHERE is_step ORDER BY task, iteration";

static void take_step(struct run_export *out, struct statement *row, void *context)
{
    struct place *place = context;
    int64_t task = statement_integer(row, 0);
    if (task != place->task) {
        place->before += place->iteration;
        place->task = task;
    }
    place->iteration = statement_integer(row, 1);
    int64_t step = place->before + place->iteration;
    add_scalar(out, real(row, 4), step, "training/loss", real(row, 2));
    add_scalar(out, real(row, 4), step, "training/learning_rate", real(row, 3));
}

static const char accuracies_sql[] = "SELECT after_task + 1, 'accuracy/' || name, accuracy, "
                                     "(SELECT total(seconds) FROM timings WHERE run = ?1 AND task <= after_task) "
                                     "FROM matrix WHERE run = ?1 ORDER BY after_task, task";

static const char means_sql[] = "SELECT after_task + 1, 'metrics/mean_accuracy', accuracy, "
                                "(SELECT total(seconds) FROM timings WHERE run = ?1 AND task <= after_task) "
                                "FROM mean_accuracy WHERE run = ?1 ORDER BY after_task";

static void take_accuracy(struct run_export *out, struct statement *row, void *context)
{
    (void)context;
    add_scalar(out, real(row, 3), statement_integer(row, 0), statement_text(row, 1), real(row, 2));
}

static const char metrics_sql[] =
    "SELECT (SELECT total(seconds) FROM timings WHERE run = ?1), transfer, average, last, forgetting, "
    "backward_transfer, forward_transfer, gain, zero_shot FROM metrics WHERE run = ?1";

/* A run of one task has no Transfer. */
static void take_metrics(struct run_export *out, struct statement *row, void *context)
{
    (void)context;
    for (size_t column = 1; column < statement_columns(row); column++) {
        char tag[64] = "metrics/";
        strncat(tag, statement_title(row, column), sizeof tag - strlen(tag) - 1);
        double value = real(row, column);
        if (!isnan(value))
            add_scalar(out, real(row, 0), out->tasks, tag, value);
    }
}

/* --- Text --- */

static void add_cell(struct text *markdown, const char *value)
{
    for (; *value; value++)
        text_add(markdown, *value == '|' ? "\\|" : *value == '\n' ? " " : "%c", *value);
}

static void add_line(struct text *markdown, const char *key, const char *value)
{
    text_add(markdown, "%s| ", markdown->size ? "" : "| key | value |\n| --- | --- |\n");
    add_cell(markdown, key);
    text_add(markdown, " | ");
    add_cell(markdown, value);
    text_add(markdown, " |\n");
}

static void take_description(struct run_export *out, struct statement *row, void *context)
{
    (void)out;
    for (size_t column = 0; column < statement_columns(row); column++)
        add_line(context, statement_title(row, column), statement_text(row, column));
}

static status add_text(struct run_export *out, const char *tag, struct text *markdown, struct error *error)
{
    bool failed = markdown->failed;
    if (!failed && markdown->data != NULL)
        event_file_text(&out->file, &(struct event_time){.clock = out->started}, tag, markdown->data);
    text_free(markdown);
    return failed ? error_set(error, ERROR_MEMORY, "run %" PRId64 ": out of memory", out->run) : OK;
}

static status add_description(struct run_export *out, struct error *error)
{
    struct text markdown = {0};
    status result = each_row(out,
                             "SELECT run, suite, setting, method, policy, selector, selection, task_order AS \"order\","
                             " model, backend, \"precision\", program_version, seed, tasks, trainable_parameters, "
                             "status, message, started, finished, suite_hash FROM runs WHERE run = ?1",
                             take_description, &markdown, error);
    if (result == OK)
        return add_text(out, "run", &markdown, error);
    text_free(&markdown);
    return result;
}

static status add_hyperparameters(struct run_export *out, struct error *error)
{
    struct text markdown = {0};
    struct setting_values values;
    status result = setting_values_read(&values, out->store, out->run, error);
    for (size_t i = 0; result == OK && i < values.count; i++)
        add_line(&markdown, values.value[i].key, values.value[i].value);
    setting_values_free(&values);
    if (result == OK)
        return add_text(out, "hyperparameters", &markdown, error);
    text_free(&markdown);
    return result;
}

/* The settings in which the chosen runs differ, a row per run and key. Seeds differ within a group. */
static const char differing_sql[] =
    "WITH differing AS (SELECT key FROM settings JOIN chosen USING (run) WHERE key NOT IN ('run.seeds', "
    "'method.name', 'merge.policy') GROUP BY key "
    "HAVING count(DISTINCT value) > 1 OR count(*) < (SELECT count(*) FROM chosen)) "
    "SELECT run, key, CAST(value AS TEXT) FROM settings JOIN differing USING (key) "
    "WHERE run IN (SELECT run FROM chosen) "
    "UNION ALL SELECT run, 'method', method FROM chosen UNION ALL SELECT run, 'policy', policy FROM chosen "
    "UNION ALL SELECT run, 'suite', suite FROM chosen ORDER BY 1, 2";

static const char end_sql[] =
    "SELECT suite_hash, status, total(seconds) FROM runs JOIN timings USING (run) WHERE run = ?1";

static enum event_outcome outcome_of(const char *run_status)
{
    return strcmp(run_status, "finished") == 0  ? EVENT_FINISHED
           : strcmp(run_status, "running") == 0 ? EVENT_RUNNING
                                                : EVENT_FAILED;
}

static void take_settings(struct run_export *out, struct statement *row, void *context)
{
    struct event_setting *settings = context;
    size_t count = 0;
    for (size_t i = 0; i < table_rows(out->differing); i++)
        if (table_cell_at(out->differing, i, 0)->integer == out->run)
            settings[count++] = (struct event_setting){table_cell_at(out->differing, i, 1)->text,
                                                       table_cell_at(out->differing, i, 2)->text};
    event_file_settings(&out->file, &(struct event_time){.clock = out->started}, statement_text(row, 0), settings,
                        count);
    event_file_end(&out->file, &(struct event_time){.clock = out->started + real(row, 2)},
                   outcome_of(statement_text(row, 1)));
}

static status add_settings(struct run_export *out, struct error *error)
{
    struct event_setting *settings = calloc(table_rows(out->differing), sizeof *settings);
    if (settings == NULL)
        return error_set(error, ERROR_MEMORY, "run %" PRId64 ": out of memory", out->run);
    status result = each_row(out, end_sql, take_settings, settings, error);
    free(settings);
    return result;
}

static status fill(struct run_export *out, struct error *error)
{
    struct place place = {.task = -1};
    event_file_begin(&out->file, out->started);
    TRY(add_description(out, error));
    TRY(add_hyperparameters(out, error));
    TRY(add_settings(out, error));
    TRY(each_row(out, steps_sql, take_step, &place, error));
    TRY(each_row(out, accuracies_sql, take_accuracy, NULL, error));
    TRY(each_row(out, means_sql, take_accuracy, NULL, error));
    return each_row(out, metrics_sql, take_metrics, NULL, error);
}

/* --- Files --- */

/* A word as part of a path: letters, digits and ".-_" alone, and no leading dot. */
static void add_part(struct text *path, const char *word)
{
    for (const char *at = word; *at; at++) {
        bool plain = isalnum((unsigned char)*at) || *at == '-' || *at == '_' || (*at == '.' && at > word);
        text_add(path, "%c", plain ? *at : '_');
    }
}

/* Of a row of runs_sql. */
static void add_folder(struct text *path, struct statement *row)
{
    add_part(path, statement_text(row, 1));
    text_add(path, "/");
    add_part(path, statement_text(row, 2));
    text_add(path, "-");
    add_part(path, statement_text(row, 3));
    text_add(path, "-%.*s/seed%" PRId64, CONFIGURATION_DIGITS, statement_text(row, 4), statement_integer(row, 5));
}

static const char runs_sql[] = "SELECT run, suite, method, policy, suite_hash, seed, tasks, "
                               "coalesce(CAST(strftime('%s', started) AS INTEGER), 0) FROM chosen ORDER BY run";

static status write_file(const struct run_export *out, struct text *path, struct file_group *group, struct error *error)
{
    text_add(path, "/events.out.tfevents.%010.0f.mtil", out->started);
    if (path->failed || out->file.bytes.failed)
        return error_set(error, ERROR_MEMORY, "run %" PRId64 ": out of memory", out->run);
    return file_group_add(group, path->data, out->file.bytes.data, out->file.bytes.size, error);
}

static status export_run(struct store *store, const struct table *differing, struct statement *row,
                         struct file_group *group, struct tensorboard_counts *counts, struct error *error)
{
    struct run_export out = {.store = store,
                             .differing = differing,
                             .run = statement_integer(row, 0),
                             .tasks = statement_integer(row, 6),
                             .started = (double)statement_integer(row, 7)};
    struct text path = {0};
    status result = fill(&out, error);
    add_folder(&path, row);
    if (result == OK)
        result = write_file(&out, &path, group, error);
    if (result == OK) {
        counts->runs++;
        counts->values += out.values;
    }
    text_free(&path);
    event_file_free(&out.file);
    return result;
}

static status export_runs(struct store *store, const struct table *differing, struct file_group *group,
                          struct tensorboard_counts *counts, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database, runs_sql, error));
    bool row = true;
    status result = statement_bind(statement, NO_VALUES, error);
    while (result == OK && (result = statement_step(statement, &row, error)) == OK && row)
        result = export_run(store, differing, statement, group, counts, error);
    statement_close(statement);
    return result;
}

status tensorboard_export(struct store *store, const struct query_filter *filter, const char *folder,
                          struct tensorboard_counts *counts, struct error *error)
{
    *counts = (struct tensorboard_counts){0};
    struct table differing = {0};
    struct file_group group;
    TRY(query_check_chosen(store, filter, error));
    status result = file_group_begin(&group, folder, error);
    NEXT(result, query_sql(store, differing_sql, &differing, error));
    NEXT(result, export_runs(store, &differing, &group, counts, error));
    NEXT(result, file_group_commit(&group, error));
    file_group_abandon(&group);
    table_free(&differing);
    return result;
}
