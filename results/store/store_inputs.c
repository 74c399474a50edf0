/* The tables `inputs` and `sessions`, and the runs whose inputs changed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/store/store_internal.h"

#include "core/array.h"

static status out_of_memory(const struct store *store, struct error *error)
{
    return error_set(error, ERROR_MEMORY, "%s: out of memory for the inputs of a run", store_path(store));
}

/* --- Writing --- */

status store_insert_inputs(struct store *store, int64_t run, const struct input_row *inputs, size_t count,
                           struct error *error)
{
    for (size_t i = 0; i < count; i++)
        TRY(store_run_once(store,
                           "INSERT INTO inputs (run, task, kind, path, files, bytes, digest) "
                           "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                           VALUES(value_integer(run), value_integer(inputs[i].task), value_text(inputs[i].kind),
                                  value_text(inputs[i].path), value_integer(inputs[i].files),
                                  value_integer(inputs[i].bytes), value_text(inputs[i].digest)),
                           error));
    return OK;
}

status store_insert_settings(struct store *store, int64_t run, const struct setting_row *settings, size_t count,
                             struct error *error)
{
    for (size_t i = 0; i < count; i++)
        TRY(store_run_once(store,
                           "INSERT INTO settings (run, key, value, type) VALUES (?1, ?2, CASE ?4 WHEN 'integer' THEN "
                           "CAST(?3 AS INTEGER) WHEN 'real' THEN CAST(?3 AS REAL) ELSE ?3 END, ?4)",
                           VALUES(value_integer(run), value_text(settings[i].key), value_text(settings[i].value),
                                  value_text(settings[i].type)),
                           error));
    return OK;
}

status store_run_change_inputs(struct store *store, int64_t run, const char *suite_hash, const struct input_row *inputs,
                               size_t count, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result = store_run_once(store, "DELETE FROM inputs WHERE run = ?1", VALUES(value_integer(run)), error);
    if (result == OK)
        result = store_insert_inputs(store, run, inputs, count, error);
    if (result == OK)
        result = store_run_once(store, "UPDATE runs SET suite_hash = ?2 WHERE run = ?1",
                                VALUES(value_integer(run), value_text(suite_hash)), error);
    return database_end(store->database, began, result, error);
}

status store_add_session(struct store *store, int64_t run, const struct session_row *row, struct error *error)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return store_run_once(
        store,
        "INSERT INTO sessions (run, started, host, program_version, program_commit, command_line, compiler, libraries, "
        "cpu, gpu, driver) VALUES (?1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        VALUES(value_integer(run), value_text(host), value_text(row->program_version), value_text(row->program_commit),
               value_text(row->command_line), value_text(row->compiler), value_text(row->libraries),
               value_text(row->cpu), value_text(row->gpu), value_text(row->driver)),
        error);
}

/* --- Reading --- */

status store_run_folder(struct store *store, int64_t run, char **folder, struct error *error)
{
    struct statement *statement;
    *folder = NULL;
    TRY(statement_open(&statement, store->database, "SELECT folder FROM runs WHERE run = ?1", error));
    bool row = false;
    status result = statement_bind(statement, VALUES(value_integer(run)), error);
    if (result == OK)
        result = statement_step(statement, &row, error);
    if (result == OK && !row)
        result = error_set(error, ERROR_ARGUMENT, "%s: there is no run %" PRId64, store_path(store), run);
    if (result == OK && statement_value(statement, 0).kind == VALUE_TEXT &&
        (*folder = strdup(statement_text(statement, 0))) == NULL)
        result = out_of_memory(store, error);
    statement_close(statement);
    return result;
}

static void free_input(const struct input_row *input)
{
    free((char *)input->kind);
    free((char *)input->path);
    free((char *)input->digest);
}

static void free_run(struct unfinished_run *run)
{
    for (size_t i = 0; i < run->input_count; i++)
        free_input(&run->inputs[i]);
    free(run->inputs);
    free(run->suite_hash);
    free(run->folder);
}

void unfinished_runs_free(struct unfinished_runs *found)
{
    for (size_t i = 0; i < found->count; i++)
        free_run(&found->runs[i]);
    free(found->runs);
    *found = (struct unfinished_runs){0};
}

/* A row of: task, kind, path, files, bytes, digest. */
static status take_input(struct store *store, struct statement *statement, struct unfinished_run *run,
                         struct error *error)
{
    TRY(ARRAY_GROW(run->inputs, run->input_count, "inputs of a run", error));
    struct input_row *input = &run->inputs[run->input_count++];
    *input = (struct input_row){.task = statement_integer(statement, 0),
                                .kind = strdup(statement_text(statement, 1)),
                                .path = strdup(statement_text(statement, 2)),
                                .files = statement_integer(statement, 3),
                                .bytes = statement_integer(statement, 4),
                                .digest = strdup(statement_text(statement, 5))};
    bool whole = input->kind != NULL && input->path != NULL && input->digest != NULL;
    return whole ? OK : out_of_memory(store, error);
}

static status read_inputs(struct store *store, struct unfinished_run *run, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database,
                       "SELECT task, kind, path, files, bytes, digest FROM inputs WHERE run = ?1 ORDER BY task, kind",
                       error));
    status result = statement_bind(statement, VALUES(value_integer(run->run)), error);
    for (bool row = true; result == OK && (result = statement_step(statement, &row, error)) == OK && row;)
        result = take_input(store, statement, run, error);
    statement_close(statement);
    return result;
}

/* A row of: run, suite_hash, folder, whether it is evaluated, the first task without a trace of training. */
static status take_run(struct store *store, struct statement *statement, struct unfinished_runs *found,
                       struct error *error)
{
    TRY(ARRAY_GROW(found->runs, found->count, "runs", error));
    struct unfinished_run *run = &found->runs[found->count++];
    bool has_folder = statement_value(statement, 2).kind == VALUE_TEXT;
    *run = (struct unfinished_run){.run = statement_integer(statement, 0),
                                   .suite_hash = strdup(statement_text(statement, 1)),
                                   .folder = has_folder ? strdup(statement_text(statement, 2)) : NULL,
                                   .evaluated = statement_integer(statement, 3) != 0,
                                   .first_untrained = statement_integer(statement, 4)};
    if (run->suite_hash == NULL || (has_folder && run->folder == NULL))
        return out_of_memory(store, error);
    return read_inputs(store, run, error);
}

static const char unfinished_sql[] =
    "SELECT run, suite_hash, folder, EXISTS (SELECT 1 FROM evaluations WHERE evaluations.run = runs.run), "
    "max(coalesce((SELECT max(after_task) + 1 FROM evaluations WHERE evaluations.run = runs.run), 0), "
    "coalesce((SELECT max(task) + 1 FROM steps WHERE steps.run = runs.run), 0)) "
    "FROM runs WHERE settings_hash = ?1 AND seed = ?2 AND status <> 'finished' ORDER BY run DESC";

static status find_runs(struct store *store, const char *settings_hash, int64_t seed, struct unfinished_runs *found,
                        struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database, unfinished_sql, error));
    status result = statement_bind(statement, VALUES(value_text(settings_hash), value_integer(seed)), error);
    for (bool row = true; result == OK && (result = statement_step(statement, &row, error)) == OK && row;)
        result = take_run(store, statement, found, error);
    statement_close(statement);
    return result;
}

status store_find_unfinished(struct store *store, const char *settings_hash, int64_t seed,
                             struct unfinished_runs *found, struct error *error)
{
    *found = (struct unfinished_runs){0};
    status result = find_runs(store, settings_hash, seed, found, error);
    if (result != OK)
        unfinished_runs_free(found);
    return result;
}
