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

static status take_text(void *text, struct statement *row, struct error *error)
{
    return statement_copy(row, 0, text, error);
}

status store_run_folder(struct store *store, int64_t run, char **folder, struct error *error)
{
    *folder = NULL;
    return database_each(store->database, "SELECT folder FROM runs WHERE run = ?1", VALUES(value_integer(run)),
                         take_text, folder, error);
}

/* --- Unfinished runs --- */

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

/* Columns: task, kind, path, files, bytes, digest. */
static status take_input(void *context, struct statement *row, struct error *error)
{
    struct unfinished_run *run = context;
    GROW(run->inputs, run->input_count);
    struct input_row *input = &run->inputs[run->input_count++];
    *input = (struct input_row){
        .task = statement_integer(row, 0), .files = statement_integer(row, 3), .bytes = statement_integer(row, 4)};
    TRY(statement_copy(row, 1, (char **)&input->kind, error));
    TRY(statement_copy(row, 2, (char **)&input->path, error));
    return statement_copy(row, 5, (char **)&input->digest, error);
}

/* Columns: run, suite_hash, folder, whether it is evaluated, the first task without a trace of training. */
static status take_run(void *context, struct statement *row, struct error *error)
{
    struct unfinished_runs *found = context;
    GROW(found->runs, found->count);
    struct unfinished_run *run = &found->runs[found->count++];
    *run = (struct unfinished_run){.run = statement_integer(row, 0),
                                   .evaluated = statement_integer(row, 3) != 0,
                                   .first_untrained = statement_integer(row, 4)};
    TRY(statement_copy(row, 1, &run->suite_hash, error));
    return statement_copy(row, 2, &run->folder, error);
}

static const char unfinished_sql[] =
    "SELECT run, suite_hash, folder, EXISTS (SELECT 1 FROM evaluations WHERE evaluations.run = runs.run), "
    "max(coalesce((SELECT max(after_task) + 1 FROM evaluations WHERE evaluations.run = runs.run), 0), "
    "coalesce((SELECT max(task) + 1 FROM steps WHERE steps.run = runs.run), 0)) "
    "FROM runs WHERE settings_hash = ?1 AND seed = ?2 AND status <> 'finished' ORDER BY run DESC";

status store_find_unfinished(struct store *store, const char *settings_hash, int64_t seed,
                             struct unfinished_runs *found, struct error *error)
{
    *found = (struct unfinished_runs){0};
    status result = database_each(store->database, unfinished_sql,
                                  VALUES(value_text(settings_hash), value_integer(seed)), take_run, found, error);
    for (size_t i = 0; result == OK && i < found->count; i++)
        result = database_each(store->database,
                               "SELECT task, kind, path, files, bytes, digest FROM inputs WHERE run = ?1 "
                               "ORDER BY task, kind",
                               VALUES(value_integer(found->runs[i].run)), take_input, &found->runs[i], error);
    if (result != OK)
        unfinished_runs_free(found);
    return result;
}
