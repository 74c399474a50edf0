/* The life of a run: found or created, locked, its rows committed, rewound, ended, removed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "results/store/live.h"
#include "results/store/store_internal.h"

static const char *const status_names[] = {"running", "stopped", "finished", "failed"};

/* --- Rows that others change ---
 * Other programs can change or delete rows of the run that a store writes, so it compares their number and digest. */

static status read_held(const struct store *store, struct database *database, struct held_rows *rows,
                        struct error *error)
{
    *rows = (struct held_rows){.known = store->held != 0};
    if (!rows->known)
        return OK;
    return run_rows_take(database, "SELECT *", RUN_HELD, (struct value[3]){value_integer(store->held)}, rows, error);
}

/* Whether a database has the run that is held, as it was written. */
static status check_held(const struct store *store, struct database *database, bool finished, struct error *error)
{
    struct held_rows found;
    int64_t run;
    TRY(database_ask(database, "SELECT run FROM runs WHERE run = ?1 AND (status = 'finished' OR NOT ?2)",
                     VALUES(value_integer(store->held), value_integer(finished)), &run, error));
    if (run == 0)
        return error_set(error, ERROR_FORMAT,
                         "%s: run %" PRId64 " is gone: somebody deleted it while it was written, or the file's content "
                         "was replaced; give the same command again to start it anew",
                         store_path(store), store->held);
    if (!store->rows.known)
        return OK;
    TRY(read_held(store, database, &found, error));
    if (found.count == store->rows.count && found.digest == store->rows.digest)
        return OK;
    return error_set(error, ERROR_FORMAT,
                     "%s: expected the %" PRId64 " rows of run %" PRId64 " as they were written, found %" PRId64
                     "%s: somebody changed them while it was written; `mtil runs delete` removes what is left, and "
                     "the same command starts it anew",
                     store_path(store), store->rows.count, store->held, found.count,
                     found.count == store->rows.count ? " with other values" : "");
}

/* Opens the file anew by its path and finds its pages whole and the run finished, with all its rows. */
static status confirm_end(struct store *store, struct error *error)
{
    SCOPED(database_close_at) struct database *fresh = NULL;
    bool whole;
    TRY(database_check_files(store->database, error));
    TRY(database_check_pages(store->database, &whole, error));
    if (!whole)
        return error_set(error, ERROR_IO,
                         "%s: is damaged: something other than SQLite wrote to it while this program used it; put a "
                         "whole copy in its place, or name another database",
                         store_path(store));
    TRY(database_open(&fresh, store_path(store), STORE_READ, NULL, error));
    return check_held(store, fresh, true, error);
}

/* --- Transactions --- */

void store_begin(struct store *store)
{
    store->collects = true;
}

void store_rollback(struct store *store)
{
    store->collects = false;
    pending_clear(store);
}

/* *after: the run's rows afterwards, if they were known before. */
static status write_pending(struct store *store, struct held_rows *after, struct error *error)
{
    if (store->held)
        TRY(check_held(store, store->database, false, error));
    if (pending_write(store, error) != OK)
        return error_context(error, "run %" PRId64, store->held);
    return store->rows.known ? read_held(store, store->database, after, error) : OK;
}

status store_commit(struct store *store, struct error *error)
{
    bool began;
    struct held_rows after = {0};
    if (store->collects) {
        TRY(database_begin(store->database, &began, error));
        TRY(database_end(store->database, began, write_pending(store, &after, error), error));
        store->rows = after;
    }
    store_rollback(store); /* what is written no longer waits */
    return OK;
}

/* --- Finding and starting --- */

status store_run_find(struct store *store, const char *suite_hash, int64_t seed, int64_t *run, enum run_status *past,
                      struct error *error)
{
    SCOPED(statement_close_at) struct statement *row = NULL;
    *run = 0;
    TRY(database_row(store->database, "SELECT run, status FROM runs WHERE suite_hash = ?1 AND seed = ?2",
                     VALUES(value_text(suite_hash), value_integer(seed)), &row, error));
    if (!row)
        return OK;
    *run = statement_integer(row, 0);
    *past = RUN_RUNNING; /* the schema allows no other than these */
    while (*past < RUN_FAILED && strcmp(statement_text(row, 1), status_names[*past]) != 0)
        ++*past;
    return OK;
}

status store_read_run(struct store *store, int64_t run, struct run_row *read, struct error *error)
{
    SCOPED(statement_close_at) struct statement *row = NULL;
    *read = (struct run_row){.run = run};
    TRY(database_row(store->database,
                     "SELECT seed, suite, suite_text, suite_hash, status, folder FROM runs WHERE run = ?1",
                     VALUES(value_integer(run)), &row, error));
    if (!row)
        return error_set(error, ERROR_ARGUMENT,
                         "%s: there is no run %" PRId64 "; `mtil query runs` lists those there are", store_path(store),
                         run);
    read->seed = statement_integer(row, 0);
    char **const texts[] = {&read->suite, &read->suite_text, &read->suite_hash, &read->status, &read->folder};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = statement_string(row, i + 1);
    return OK;
}

void run_row_free(struct run_row *row)
{
    free(row->suite);
    free(row->suite_text);
    free(row->suite_hash);
    free(row->status);
    free(row->folder);
    *row = (struct run_row){0};
}

static status add_inputs(struct store *store, int64_t run, const struct input_row *inputs, size_t count,
                         struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct input_row *row = &inputs[i];
        TRY(store_add(store, run, "inputs",
                      NAMED({"task", value_integer(row->task)}, {"kind", value_text(row->kind)},
                            {"path", value_text(row->path)}, {"files", value_integer(row->files)},
                            {"bytes", value_integer(row->bytes)}, {"digest", value_text(row->digest)}),
                      error));
    }
    return OK;
}

/* *id 0: the next free one. */
static status insert_run(struct store *store, const struct run_description *run, int64_t *id, struct error *error)
{
    TRY(store_add(store, *id, "runs",
                  NAMED({"suite", value_text(run->suite)}, {"suite_hash", value_text(run->suite_hash)},
                        {"settings_hash", value_text(run->settings_hash)}, {"suite_text", value_text(run->suite_text)},
                        {"setting", value_text(run->setting)}, {"method", value_text(run->method)},
                        {"policy", value_text(run->policy)}, {"selector", value_text(run->selector)},
                        {"selection", value_text(run->selection)}, {"task_order", value_text(run->order)},
                        {"model", value_text(run->model)}, {"backend", value_text(run->backend)},
                        {"precision", value_text(run->precision)},
                        {"program_version", value_text(run->program_version)}, {"seed", value_integer(run->seed)},
                        {"tasks", value_integer(run->tasks)},
                        {"trainable_parameters", value_count(run->trainable_parameters)},
                        {"status", value_text(status_names[RUN_RUNNING])}, {"host", value_text("")},
                        {"process", value_integer(0)}, {"folder", value_text(run->folder)}),
                  error));
    *id = database_last_row(store->database);
    for (const struct setting_row *row = run->settings; row < run->settings + run->setting_count; row++)
        TRY(store_add(
            store, *id, "settings",
            NAMED({"key", value_text(row->key)}, {"value", value_text(row->value)}, {"type", value_text(row->type)}),
            error));
    TRY(database_run(store->database,
                     "UPDATE settings SET value = CASE type WHEN 'integer' THEN CAST(value AS INTEGER) ELSE "
                     "CAST(value AS REAL) END WHERE run = ?1 AND type IN ('integer', 'real')",
                     VALUES(value_integer(*id)), error));
    return add_inputs(store, *id, run->inputs, run->input_count, error);
}

/* A finished run stays finished. */
static status take_over(struct store *store, int64_t run, struct error *error)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return database_run(
        store->database,
        "UPDATE runs SET host = ?2, process = ?3, status = iif(status = 'finished', status, 'running'), "
        "finished = iif(status = 'finished', finished, NULL), message = NULL WHERE run = ?1",
        VALUES(value_integer(run), value_text(host), value_integer(getpid())), error);
}

/* Locks the run while its row is being made or looked at. */
static status lock_run(struct store *store, int64_t run, bool *taken, struct error *error)
{
    SCOPED(statement_close_at) struct statement *row = NULL;
    TRY(lock_take(&store->locks, run, 0, taken, error));
    if (*taken)
        return OK;
    TRY(database_row(store->database, "SELECT suite, seed, process, host FROM runs WHERE run = ?1",
                     VALUES(value_integer(run)), &row, error));
    if (!row)
        return error_set(error, ERROR_BUSY, "%s: run %" PRId64 " is being removed; try again", store_path(store), run);
    if (statement_integer(row, 2) == 0) /* the row was made in this transaction */
        error_set(error, ERROR_BUSY,
                  "%s: run %" PRId64
                  " is new here, but its lock is held by a run that writes a database of this name that "
                  "was deleted or renamed; stop that run, or name another database",
                  store_path(store), run);
    else
        error_set(error, ERROR_BUSY,
                  "%s: in use by another run: run %" PRId64 " (suite %.100s, seed %" PRId64
                  ") is being written by process %" PRId64 " on %.100s; wait for it, stop it, or name another database",
                  store_path(store), run, statement_text(row, 0), statement_integer(row, 1), statement_integer(row, 2),
                  statement_text(row, 3));
    return ERROR_BUSY;
}

/* A known run, or that of the description, in a transaction: nobody finds it between its row and its lock. */
static status open_run(struct store *store, int64_t known, enum run_claim claim,
                       const struct run_description *description, struct run_start *start, bool *taken,
                       struct error *error)
{
    if (known == 0)
        TRY(store_run_find(store, description->suite_hash, description->seed, &start->run, &start->past, error));
    start->created = start->run == 0 || claim == RUN_ANEW;
    if (start->run == 0)
        TRY(insert_run(store, description, &start->run, error));
    TRY(lock_run(store, start->run, taken, error));
    if (claim == RUN_ANEW) {
        TRY(run_rows_erase(store->database, start->run, error));
        TRY(insert_run(store, description, &start->run, error));
    }
    return take_over(store, start->run, error);
}

status store_run_claim(struct store *store, int64_t run, enum run_claim claim,
                       const struct run_description *description, struct run_start *start, struct error *error)
{
    *start = (struct run_start){.run = run, .past = run != 0 ? RUN_STOPPED : RUN_RUNNING};
    bool taken = false, began;
    TRY(database_begin(store->database, &began, error));
    status result = open_run(store, run, claim, description, start, &taken, error);
    result = database_end(store->database, began, result, error);
    if (result != OK && taken)
        lock_give(&store->locks, start->run);
    if (result == OK) {
        store->held = start->run;
        store->rows.known = false;
    }
    return result;
}

status store_run_start(struct store *store, const struct run_description *description, struct run_start *start,
                       struct error *error)
{
    return store_run_claim(store, 0, RUN_GOES_ON, description, start, error);
}

/* --- Ending and rewinding --- */

/* Not before its sessions, whose machine may have another clock, or one that was set back. */
static status record_end(struct store *store, int64_t run, enum run_status end, const char *message,
                         struct error *error)
{
    if (end == RUN_FINISHED && run == store->held)
        TRY(check_held(store, store->database, false, error));
    return database_run(store->database,
                        "UPDATE runs SET finished = iif(status = 'finished', finished, "
                        "max(strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), coalesce((SELECT max(started) FROM sessions "
                        "WHERE sessions.run = runs.run), started))), status = ?2, message = ?3 WHERE run = ?1",
                        VALUES(value_integer(run), value_text(status_names[end]), value_text(message)), error);
}

status store_run_end(struct store *store, int64_t run, enum run_status end, const char *message, struct error *error)
{
    bool began = false;
    status result = database_begin(store->database, &began, error);
    NEXT(result, database_end(store->database, began, record_end(store, run, end, message, error), error));
    if (began && end == RUN_FINISHED && run == store->held) /* else others cannot see it yet */
        NEXT(result, confirm_end(store, error));
    live_erase(store, run);
    lock_give(&store->locks, run);
    if (run == store->held)
        store->held = 0;
    return result;
}

status store_run_rewind(struct store *store, int64_t run, int64_t task, int64_t iteration, struct error *error)
{
    bool began;
    const struct value place[3] = {value_integer(run), value_integer(task), value_integer(task < 0 ? -1 : iteration)};
    TRY(database_begin(store->database, &began, error));
    status result = run_rows_take(store->database, "DELETE", RUN_AFTER, place, NULL, error);
    if (run == store->held)
        NEXT(result, read_held(store, store->database, &store->rows, error));
    return database_end(store->database, began, result, error);
}

/* A cell's results per image go before it. */
status store_run_extend(struct store *store, int64_t run, int64_t from, struct error *error)
{
    static const char *const dropped[] = {"DELETE FROM per_image WHERE run = ?1 AND after_task < 0",
                                          "DELETE FROM router_choices WHERE run = ?1 AND after_task < 0",
                                          "DELETE FROM evaluations WHERE run = ?1 AND after_task < 0",
                                          "DELETE FROM class_experts WHERE run = ?1",
                                          "DELETE FROM patch_experts WHERE run = ?1"};
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result = run_rows_copy_tasks(store->database, from, run, error);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        NEXT(result, database_run(store->database, dropped[i], VALUES(value_integer(run)), error));
    NEXT(result, read_held(store, store->database, &store->rows, error));
    return database_end(store->database, began, result, error);
}

/* In a transaction, which reads even after a request to stop: a stopped run asks before it saves its place. */
status store_digest_rows(struct store *store, int64_t run, int64_t task, int64_t iteration, int64_t *digest,
                         struct error *error)
{
    bool began;
    struct held_rows rows = {0};
    const struct value place[3] = {value_integer(run), value_integer(task), value_integer(iteration)};
    TRY(database_begin(store->database, &began, error));
    status result = run_rows_take(store->database, "SELECT *", RUN_BEFORE, place, &rows, error);
    *digest = (int64_t)(rows.digest & INT64_MAX);
    return database_end(store->database, began, result, error);
}

/* --- Changing and removing --- */

status store_run_change_inputs(struct store *store, int64_t run, const char *suite_hash, const struct input_row *inputs,
                               size_t count, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result =
        database_run(store->database, "DELETE FROM inputs WHERE run = ?1", VALUES(value_integer(run)), error);
    NEXT(result, add_inputs(store, run, inputs, count, error));
    NEXT(result, database_run(store->database, "UPDATE runs SET suite_hash = ?2 WHERE run = ?1",
                              VALUES(value_integer(run), value_text(suite_hash)), error));
    return database_end(store->database, began, result, error);
}

status store_run_measure(struct store *store, int64_t run, int64_t parameters, struct error *error)
{
    return database_run(store->database, "UPDATE runs SET trainable_parameters = ?2 WHERE run = ?1",
                        VALUES(value_integer(run), value_count(parameters)), error);
}

status store_run_move(struct store *store, int64_t run, const char *folder, struct error *error)
{
    return database_run(store->database, "UPDATE runs SET folder = ?2 WHERE run = ?1",
                        VALUES(value_integer(run), value_text(folder)), error);
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

status store_run_lock(struct store *store, int64_t run, struct error *error)
{
    bool taken;
    TRY(lock_take(&store->locks, run, 0, &taken, error));
    return taken
               ? OK
               : error_set(error, ERROR_BUSY,
                           "%s: run %" PRId64 " is going on: stop it first (Ctrl-C where it runs), or wait for its end",
                           store_path(store), run);
}

status store_run_erase(struct store *store, int64_t run, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    TRY(database_end(store->database, began, run_rows_erase(store->database, run, error), error));
    live_erase(store, run);
    lock_give(&store->locks, run);
    return OK;
}
