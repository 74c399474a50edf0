#include "results/store/trials.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "results/store/erase.h"
#include "results/store/store_internal.h"

/* --- What there is to try --- */

static char *copy_of(struct statement *row, size_t column)
{
    return strdup(statement_text(row, column));
}

static status read_run(struct statement *row, struct trial_source *source, struct error *error)
{
    source->seed = statement_integer(row, 0);
    source->suite = copy_of(row, 1);
    source->suite_text = copy_of(row, 2);
    source->suite_hash = copy_of(row, 3);
    return source->suite != NULL && source->suite_text != NULL && source->suite_hash != NULL
               ? OK
               : error_set(error, ERROR_MEMORY, "trial: no memory for a run's description");
}

static status read_adapters(struct statement *row, struct trial_source *source, struct error *error)
{
    TRY(ARRAY_GROW(source->adapters, source->count, "adapters of a run", error));
    struct trial_adapters *adapters = &source->adapters[source->count++];
    *adapters = (struct trial_adapters){statement_integer(row, 0), copy_of(row, 1), copy_of(row, 2)};
    return adapters->path != NULL && adapters->digest != NULL
               ? OK
               : error_set(error, ERROR_MEMORY, "trial: no memory for the path of adapters");
}

static status read_rows(struct store *store, const char *sql, int64_t run, struct trial_source *source,
                        status (*take)(struct statement *, struct trial_source *, struct error *), struct error *error)
{
    struct statement *rows;
    TRY(statement_open(&rows, store->database, sql, error));
    status result = statement_bind(rows, VALUES(value_integer(run)), error);
    for (bool row; result == OK && (result = statement_step(rows, &row, error)) == OK && row;)
        result = take(rows, source, error);
    statement_close(rows);
    return result;
}

status trial_source_read(struct store *store, int64_t run, struct trial_source *source, struct error *error)
{
    *source = (struct trial_source){0};
    TRY(read_rows(store, "SELECT seed, suite, suite_text, suite_hash FROM runs WHERE run = ?1", run, source, read_run,
                  error));
    if (source->suite == NULL)
        return error_set(error, ERROR_ARGUMENT, "%s: there is no run %" PRId64, store_path(store), run);
    TRY(erase_lock(store, run, error));
    return read_rows(store,
                     "SELECT task, path, digest FROM artifacts WHERE run = ?1 AND kind = 'adapters' ORDER BY task", run,
                     source, read_adapters, error);
}

void trial_source_free(struct trial_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        free(source->adapters[i].path);
        free(source->adapters[i].digest);
    }
    free(source->adapters);
    free(source->suite);
    free(source->suite_text);
    free(source->suite_hash);
    *source = (struct trial_source){0};
}

/* --- Trials --- */

/* The first column of the only row; 0 without one. */
static status ask(struct store *store, const char *sql, const struct value *values, size_t count, int64_t *answer,
                  struct error *error)
{
    struct statement *statement;
    bool row = false;
    TRY(statement_open(&statement, store->database, sql, error));
    status result = statement_bind(statement, values, count, error);
    NEXT(result, statement_step(statement, &row, error));
    *answer = result == OK && row ? statement_integer(statement, 0) : 0;
    statement_close(statement);
    return result;
}

status trial_find(struct store *store, int64_t run, const struct trial_row *row, int64_t *trial, struct error *error)
{
    return ask(store, "SELECT trial FROM selector_trials WHERE run = ?1 AND settings = ?2",
               VALUES(value_integer(run), value_text(row->settings)), trial, error);
}

status trial_open(struct store *store, int64_t run, const struct trial_row *row, int64_t *trial, struct error *error)
{
    TRY(store_run_once(
        store,
        "INSERT INTO selector_trials (run, trial, selector, selection, settings) SELECT ?1, "
        "(SELECT count(*) + 1 FROM selector_trials WHERE run = ?1), ?2, ?3, ?4 "
        "WHERE NOT EXISTS (SELECT 1 FROM selector_trials WHERE run = ?1 AND settings = ?4)",
        VALUES(value_integer(run), value_text(row->selector), value_text(row->selection), value_text(row->settings)),
        error));
    return trial_find(store, run, row, trial, error);
}

status trial_has(struct store *store, int64_t run, int64_t trial, int64_t after_task, bool *has, struct error *error)
{
    int64_t rows;
    TRY(ask(store, "SELECT count(*) FROM trial_evaluations WHERE run = ?1 AND trial = ?2 AND after_task = ?3",
            VALUES(value_integer(run), value_integer(trial), value_integer(after_task)), &rows, error));
    *has = rows > 0;
    return OK;
}

static status add_choices(struct store *store, int64_t run, int64_t trial, const struct router_choices_row *row,
                          struct error *error)
{
    for (size_t i = 0; i <= row->routers; i++)
        if (row->counts[i] > 0)
            TRY(store_run_once(store, "INSERT INTO trial_choices VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                               VALUES(value_integer(run), value_integer(trial), value_integer(row->after_task),
                                      value_integer(row->task), value_integer((int64_t)i - 1),
                                      value_integer((int64_t)row->counts[i])),
                               error));
    return OK;
}

status trial_add(struct store *store, int64_t run, int64_t trial, const struct evaluation_row *evaluations,
                 const struct router_choices_row *choices, size_t tasks, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result = OK;
    for (size_t j = 0; result == OK && j < tasks; j++) {
        const struct evaluation_row *row = &evaluations[j];
        result = store_run_once(store, "INSERT INTO trial_evaluations VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                                VALUES(value_integer(run), value_integer(trial), value_integer(row->task),
                                       value_integer(row->after_task), value_integer(row->correct),
                                       value_integer(row->images)),
                                error);
        NEXT(result, add_choices(store, run, trial, &choices[j], error));
    }
    return database_end(store->database, began, result, error);
}
