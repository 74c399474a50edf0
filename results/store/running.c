#include "results/store/running.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/store/live.h"
#include "results/store/store_internal.h"

#define BAR_CELLS 10

/* Rows of a statement without parameters, one call each. */
typedef void row_function(void *context, struct statement *statement);

static status each_row(struct store *store, const char *sql, row_function *take, void *context, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database, sql, error));
    status result;
    for (bool row; (result = statement_step(statement, &row, error)) == OK && row;)
        take(context, statement);
    statement_close(statement);
    return result;
}

static status out_of_memory(const struct store *store, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "%s: out of memory", store_path(store));
}

static status check_table(const struct store *store, const struct table *table, struct error *error)
{
    return table->failed ? out_of_memory(store, error) : OK;
}

/* --- Progress --- */

struct progress_rows {
    struct store *store;
    struct table *table;
};

/* The last step in the database, for a run without a live record. */
enum column { RUN, SUITE, METHOD, POLICY, SEED, TASKS, HOST, TASK, NAME, ITERATION, LOSS };

static const char progress_sql[] =
    "WITH last AS (SELECT run, max(task * 4294967296 + iteration) AS place FROM steps "
    "WHERE run IN (SELECT run FROM runs WHERE status = 'running') GROUP BY run) "
    "SELECT runs.run, suite, method, policy, seed, runs.tasks, host, steps.task, tasks.name, iteration, loss "
    "FROM runs LEFT JOIN last ON last.run = runs.run "
    "LEFT JOIN steps ON steps.run = runs.run AND steps.task = last.place / 4294967296 "
    "AND steps.iteration = last.place % 4294967296 "
    "LEFT JOIN tasks ON tasks.run = runs.run AND tasks.task = steps.task WHERE status = 'running' ORDER BY runs.run";

static bool is_this_machine(const char *host)
{
    char own[256] = "";
    gethostname(own, sizeof own - 1);
    return strcmp(own, host) == 0;
}

bool running_is_gone(struct store *store, int64_t run, const char *host)
{
    return is_this_machine(host) && !live_has_process(store, run);
}

/* The database alone knows the last step that was committed, perhaps minutes ago. */
static struct live last_committed(struct statement *row)
{
    struct live live = {.tasks = statement_integer(row, TASKS), .seconds_left = -1};
    struct value loss = statement_value(row, LOSS);
    if (statement_value(row, TASK).kind == VALUE_NULL)
        return live;
    int64_t task = statement_integer(row, TASK);
    live.task = task < INT64_MAX ? task + 1 : task; /* a file from elsewhere may have any */
    live.step = statement_integer(row, ITERATION);
    live.loss = loss.kind == VALUE_REAL ? loss.real : 0;
    snprintf(live.activity, sizeof live.activity, "train");
    snprintf(live.subject, sizeof live.subject, "%s", statement_text(row, NAME));
    return live;
}

static void add_formatted(struct table *table, struct text *text)
{
    table->failed |= text->failed;
    table_add_text(table, text->data);
    text_free(text);
}

static void add_doing(struct table *table, const struct live *live, bool gone)
{
    struct text text = {0};
    if (gone)
        text_add(&text, RUNNING_GONE);
    else if (live->activity[0])
        text_add(&text, "%s%s%s", live->activity, live->subject[0] ? " " : "", live->subject);
    add_formatted(table, &text);
}

static void add_ratio(struct table *table, int64_t part, int64_t whole)
{
    struct text text = {0};
    if (part > 0)
        text_add(&text, "%" PRId64, part);
    if (part > 0 && whole > 0)
        text_add(&text, "/%" PRId64, whole);
    add_formatted(table, &text);
}

static void add_bar(struct table *table, double done)
{
    struct text text = {0};
    if (done > 0) {
        int full = (int)(fmin(done, 1) * BAR_CELLS);
        for (int i = 0; i < BAR_CELLS; i++)
            text_add(&text, i < full ? "█" : "░");
        text_add(&text, " %2d%%", (int)(fmin(done, 1) * 100));
    }
    add_formatted(table, &text);
}

static void add_time_left(struct table *table, double seconds)
{
    struct text text = {0};
    if (seconds >= 0)
        text_add_duration(&text, seconds);
    add_formatted(table, &text);
}

static void add_progress(void *context, struct statement *row)
{
    struct progress_rows *rows = context;
    struct table *table = rows->table;
    int64_t run = statement_integer(row, RUN);
    bool gone = running_is_gone(rows->store, run, statement_text(row, HOST));
    struct live live;
    if (!live_read(rows->store, run, &live))
        live = last_committed(row);
    table_add_integer(table, run);
    table_add_text(table, statement_text(row, SUITE));
    table_add_text(table, statement_text(row, POLICY));
    table_add_integer(table, statement_integer(row, SEED));
    add_ratio(table, live.task, live.tasks);
    add_doing(table, &live, gone);
    add_ratio(table, live.step, live.steps);
    add_bar(table, live.done);
    add_time_left(table, gone ? -1 : live.seconds_left);
    table_add_real(table, live.loss != 0 ? live.loss : (double)NAN);
    table_add_real(table, live.images_per_second > 0 && !gone ? live.images_per_second : (double)NAN);
    table_add_text(table, statement_text(row, METHOD));
}

status running_progress(struct store *store, struct table *table, struct error *error)
{
    static const struct table_column columns[] = {
        {.title = "run"},
        {.title = "suite"},
        {.title = "policy"},
        {.title = "seed"},
        {.title = "task", .align = ALIGN_RIGHT},
        {.title = "doing"},
        {.title = "step", .align = ALIGN_RIGHT},
        {.title = "done"},
        {.title = "left", .align = ALIGN_RIGHT},
        {.title = "loss", .decimals = 3, .align = ALIGN_RIGHT},
        {.title = "images/s", .decimals = 0, .align = ALIGN_RIGHT},
        {.title = "method"},
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        table_add_column(table, &columns[i]);
    struct progress_rows rows = {store, table};
    TRY(each_row(store, progress_sql, add_progress, &rows, error));
    return check_table(store, table, error);
}

/* --- Accuracy --- */

static const char names_sql[] = "SELECT name, min(run * 4096 + task) AS first FROM tasks "
                                "WHERE run IN (SELECT run FROM runs WHERE status = 'running') "
                                "GROUP BY name ORDER BY first";

static const char accuracy_sql[] =
    "WITH last AS (SELECT run, max(after_task) AS after_task FROM evaluations "
    "WHERE run IN (SELECT run FROM runs WHERE status = 'running') GROUP BY run) "
    "SELECT matrix.run, trained, name, accuracy, iif(setting = 'class_incremental', images, 1) "
    "FROM last JOIN matrix USING (run, after_task) JOIN runs USING (run) ORDER BY matrix.run, task";

static void add_name(void *context, struct statement *row)
{
    table_add_column(context, &(struct table_column){.title = statement_text(row, 0), .decimals = 1});
}

enum { FIRST_TASK = 2 }; /* behind the columns run and after; the mean comes last */

/* The row that is being put together: a value per column of the table. */
struct accuracy_row {
    struct table *table;
    int64_t run; /* 0: none yet */
    char *after;
    double *values;
    double sum, weights; /* of the mean, which weighs images where classes accumulate */
};

static void finish_row(struct accuracy_row *row)
{
    if (row->run == 0)
        return;
    table_add_integer(row->table, row->run);
    table_add_text(row->table, row->after);
    for (size_t column = FIRST_TASK; column + 1 < row->table->columns; column++)
        table_add_real(row->table, row->values[column]);
    table_add_real(row->table, row->sum / row->weights);
    free(row->after);
    row->after = NULL;
    row->run = 0;
}

static void start_row(struct accuracy_row *row, struct statement *statement)
{
    row->run = statement_integer(statement, 0);
    bool zero_shot = statement_value(statement, 1).kind == VALUE_NULL;
    row->sum = row->weights = 0;
    row->after = strdup(zero_shot ? "zero-shot" : statement_text(statement, 1));
    for (size_t column = 0; column < row->table->columns; column++)
        row->values[column] = (double)NAN;
}

static void add_accuracy(void *context, struct statement *statement)
{
    struct accuracy_row *row = context;
    if (row->table->failed)
        return;
    if (statement_integer(statement, 0) != row->run) {
        finish_row(row);
        start_row(row, statement);
    }
    double accuracy = statement_value(statement, 3).real, weight = (double)statement_integer(statement, 4);
    row->sum += weight * accuracy;
    row->weights += weight;
    for (size_t column = FIRST_TASK; column + 1 < row->table->columns; column++)
        if (strcmp(row->table->column[column].title, statement_text(statement, 2)) == 0)
            row->values[column] = accuracy;
}

status running_accuracy(struct store *store, struct table *table, struct error *error)
{
    table_add_column(table, &(struct table_column){.title = "run"});
    table_add_column(table, &(struct table_column){.title = "after"});
    TRY(each_row(store, names_sql, add_name, table, error));
    table_add_column(table, &(struct table_column){.title = "mean", .decimals = 1});
    TRY(check_table(store, table, error));
    struct accuracy_row row = {.table = table, .values = calloc(table->columns, sizeof *row.values)};
    if (!row.values)
        return out_of_memory(store, error);
    status result = each_row(store, accuracy_sql, add_accuracy, &row, error);
    finish_row(&row);
    free(row.values);
    return result == OK ? check_table(store, table, error) : result;
}

/* --- Counts --- */

static void add_count(void *context, struct statement *row)
{
    struct text *line = context;
    text_add(line, "%s%" PRId64 " %s", line->size ? ", " : "", statement_integer(row, 0), statement_text(row, 1));
}

status running_counts(struct store *store, struct text *line, struct error *error)
{
    struct text counts = {0};
    status result = each_row(store,
                             "SELECT count(*), status FROM runs GROUP BY status ORDER BY status = 'running' DESC, "
                             "status = 'finished' DESC, status",
                             add_count, &counts, error);
    text_add(line, "%s", counts.data ? counts.data : counts.failed ? "" : "no runs");
    bool failed = counts.failed || line->failed;
    text_free(&counts);
    return result == OK && failed ? out_of_memory(store, error) : result;
}
