/* The inputs of runs, and the unfinished runs whose inputs may have changed. */
#include <stdlib.h>

#include "core/array.h"
#include "results/store/store_internal.h"

status store_add_inputs(struct store *store, int64_t run, const struct input_row *inputs, size_t count,
                        struct error *error)
{
    for (const struct input_row *row = inputs; row < inputs + count; row++)
        TRY(store_add(store, run, "inputs",
                      NAMED({"task", value_integer(row->task)}, {"kind", value_text(row->kind)},
                            {"path", value_text(row->path)}, {"files", value_integer(row->files)},
                            {"bytes", value_integer(row->bytes)}, {"digest", value_text(row->digest)}),
                      error));
    return OK;
}

status store_run_change_inputs(struct store *store, int64_t run, const char *suite_hash, const struct input_row *inputs,
                               size_t count, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result =
        database_run(store->database, "DELETE FROM inputs WHERE run = ?1", VALUES(value_integer(run)), error);
    NEXT(result, store_add_inputs(store, run, inputs, count, error));
    NEXT(result, database_run(store->database, "UPDATE runs SET suite_hash = ?2 WHERE run = ?1",
                              VALUES(value_integer(run), value_text(suite_hash)), error));
    return database_end(store->database, began, result, error);
}

status store_change_task(struct store *store, int64_t run, int64_t task, int64_t training_images, int64_t missing,
                         int64_t unreadable, struct error *error)
{
    return database_run(store->database,
                        "UPDATE tasks SET training_images = ?3, missing_images = ?4, unreadable_images = ?5 "
                        "WHERE run = ?1 AND task = ?2",
                        VALUES(value_integer(run), value_integer(task), value_integer(training_images),
                               value_integer(missing), value_integer(unreadable)),
                        error);
}

status store_run_folder(struct store *store, int64_t run, char **folder, struct error *error)
{
    struct statement *row;
    TRY(database_row(store->database, "SELECT folder FROM runs WHERE run = ?1", VALUES(value_integer(run)), &row,
                     error));
    *folder = row ? statement_string(row, 0) : NULL;
    statement_close(row);
    return OK;
}

/* --- Unfinished runs --- */

void unfinished_runs_free(struct unfinished_runs *found)
{
    for (struct unfinished_run *run = found->runs; run < found->runs + found->count; run++) {
        for (size_t i = 0; i < run->input_count; i++) {
            free((char *)run->inputs[i].kind);
            free((char *)run->inputs[i].path);
            free((char *)run->inputs[i].digest);
        }
        free(run->inputs);
        free(run->suite_hash);
        free(run->folder);
    }
    free(found->runs);
    *found = (struct unfinished_runs){0};
}

static status take_input(void *context, struct statement *row, struct error *error)
{
    struct unfinished_run *run = context;
    (void)error;
    GROW(run->inputs, run->input_count);
    run->inputs[run->input_count++] = (struct input_row){.task = statement_integer(row, 0),
                                                         .kind = statement_string(row, 1),
                                                         .path = statement_string(row, 2),
                                                         .files = statement_integer(row, 3),
                                                         .bytes = statement_integer(row, 4),
                                                         .digest = statement_string(row, 5)};
    return OK;
}

static status take_run(void *context, struct statement *row, struct error *error)
{
    struct unfinished_runs *found = context;
    (void)error;
    GROW(found->runs, found->count);
    found->runs[found->count++] = (struct unfinished_run){.run = statement_integer(row, 0),
                                                          .suite_hash = statement_string(row, 1),
                                                          .folder = statement_string(row, 2),
                                                          .evaluated = statement_integer(row, 3) != 0,
                                                          .first_untrained = statement_integer(row, 4)};
    return OK;
}

status store_find_unfinished(struct store *store, const char *settings_hash, int64_t seed,
                             struct unfinished_runs *found, struct error *error)
{
    static const char sql[] =
        "SELECT run, suite_hash, folder, EXISTS (SELECT 1 FROM evaluations WHERE evaluations.run = runs.run), "
        "max(coalesce((SELECT max(after_task) + 1 FROM evaluations WHERE evaluations.run = runs.run), 0), "
        "coalesce((SELECT max(task) + 1 FROM steps WHERE steps.run = runs.run), 0)) "
        "FROM runs WHERE settings_hash = ?1 AND seed = ?2 AND status <> 'finished' ORDER BY run DESC";
    *found = (struct unfinished_runs){0};
    status result = database_each(store->database, sql, VALUES(value_text(settings_hash), value_integer(seed)),
                                  take_run, found, error);
    for (size_t i = 0; i < found->count; i++)
        NEXT(result, database_each(store->database,
                                   "SELECT task, kind, path, files, bytes, digest FROM inputs WHERE run = ?1 "
                                   "ORDER BY task, kind",
                                   VALUES(value_integer(found->runs[i].run)), take_input, &found->runs[i], error));
    if (result != OK)
        unfinished_runs_free(found);
    return result;
}
