/* The life of a run: found or created, locked, its rows committed, rewound, ended. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "results/store/holding.h"
#include "results/store/live.h"
#include "results/store/run_rows.h"
#include "results/store/store_internal.h"

static const char *const status_names[] = {"running", "stopped", "finished", "failed"};

const char *run_status_name(enum run_status standing)
{
    return status_names[standing];
}

void store_begin(struct store *store)
{
    store->collects = true;
}

/* *after: the run's rows afterwards, if they were known before. */
static status write_pending(struct store *store, struct held_rows *after, struct error *error)
{
    TRY(holding_check(store, error));
    for (size_t i = 0; i < store->pending.count; i++) {
        const struct pending_row *row = store->pending.rows[i];
        if (rows_insert(store, (size_t)row->kind, row->values, error) != OK)
            return error_context(error, "run %" PRId64, store->held);
    }
    return store->rows.known ? holding_read(store, after, error) : OK;
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
    store->collects = false;
    pending_clear(&store->pending);
    return OK;
}

void store_rollback(struct store *store)
{
    store->collects = false;
    pending_clear(&store->pending);
}

struct found_run {
    int64_t run;
    enum run_status past;
};

static status take_found(void *context, struct statement *row, struct error *error)
{
    struct found_run *found = context;
    found->run = statement_integer(row, 0);
    for (size_t i = 0; i < sizeof status_names / sizeof *status_names; i++)
        if (strcmp(statement_text(row, 1), status_names[i]) == 0) {
            found->past = (enum run_status)i;
            return OK;
        }
    return error_set(error, ERROR_FORMAT, "a run has the unknown status \"%.40s\"", statement_text(row, 1));
}

status store_run_find(struct store *store, const char *suite_hash, int64_t seed, int64_t *run, enum run_status *past,
                      struct error *error)
{
    struct found_run found = {.past = *past};
    status result = database_each(store->database, "SELECT run, status FROM runs WHERE suite_hash = ?1 AND seed = ?2",
                                  VALUES(value_text(suite_hash), value_integer(seed)), take_found, &found, error);
    *run = result == OK ? found.run : 0;
    *past = found.past;
    return result == ERROR_FORMAT ? error_context(error, "%s", store_path(store)) : result;
}

int64_t store_run_process(struct store *store, int64_t run)
{
    int64_t process;
    return database_ask(store->database, "SELECT process FROM runs WHERE run = ?1", VALUES(value_integer(run)),
                        &process, NULL) == OK
               ? process
               : 0;
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
                        {"status", value_text(run_status_name(RUN_RUNNING))}, {"host", value_text("")},
                        {"process", value_integer(0)}, {"folder", value_text(run->folder)}),
                  error));
    *id = database_last_row(store->database);
    for (const struct setting_row *row = run->settings; row < run->settings + run->setting_count; row++)
        TRY(store_add(
            store, *id, "settings",
            NAMED({"key", value_text(row->key)}, {"value", value_text(row->value)}, {"type", value_text(row->type)}),
            error));
    return store_add_inputs(store, *id, run->inputs, run->input_count, error);
}

static status take_user(void *context, struct statement *row, struct error *error)
{
    const struct store *store = context;
    return error_set(error, ERROR_BUSY,
                     "%s: in use by another run: run %" PRId64 " (suite %.100s, seed %" PRId64
                     ") is being written by process %" PRId64
                     " on %.100s; wait for it, stop it, or name another database",
                     store_path(store), statement_integer(row, 0), statement_text(row, 1), statement_integer(row, 2),
                     statement_integer(row, 3), statement_text(row, 4));
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
    TRY(lock_take(&store->locks, run, 0, taken, error));
    return *taken ? OK
                  : database_each(store->database, "SELECT run, suite, seed, process, host FROM runs WHERE run = ?1",
                                  VALUES(value_integer(run)), take_user, store, error);
}

/* A known run, or that of the description: inside a transaction, so that no other process finds it between its row and its
 * lock. */
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

static status record_end(struct store *store, int64_t run, enum run_status end, const char *message,
                         struct error *error)
{
    if (end == RUN_FINISHED && run == store->held)
        TRY(holding_check(store, error));
    return database_run(store->database,
                        "UPDATE runs SET finished = iif(status = 'finished', finished, "
                        "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')), status = ?2, message = ?3 WHERE run = ?1",
                        VALUES(value_integer(run), value_text(run_status_name(end)), value_text(message)), error);
}

status store_run_end(struct store *store, int64_t run, enum run_status end, const char *message, struct error *error)
{
    bool began = false;
    status result = database_begin(store->database, &began, error);
    if (result == OK)
        result = database_end(store->database, began, record_end(store, run, end, message, error), error);
    if (result == OK && began && end == RUN_FINISHED && run == store->held) /* else others cannot see it yet */
        result = holding_confirm(store, error);
    live_erase(store, run);
    lock_give(&store->locks, run);
    if (run == store->held)
        store->held = 0;
    return result;
}

static status delete_after(struct store *store, int64_t run, int64_t task, int64_t iteration, struct error *error)
{
    char sql[256];
    for (size_t i = 0; i < STORE_TABLES; i++) {
        if (!store_tables[i].after)
            continue;
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE run = ?1 AND (%s)", store_tables[i].name,
                 store_tables[i].after);
        TRY(database_run(store->database, sql,
                         VALUES(value_integer(run), value_integer(task), value_integer(task < 0 ? -1 : iteration)),
                         error));
    }
    return run == store->held ? holding_read(store, &store->rows, error) : OK;
}

status store_run_rewind(struct store *store, int64_t run, int64_t task, int64_t iteration, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    return database_end(store->database, began, delete_after(store, run, task, iteration, error), error);
}

static status digest_before(struct store *store, int64_t run, int64_t task, int64_t iteration, int64_t *digest,
                            struct error *error)
{
    struct held_rows rows = {0};
    char sql[256];
    for (size_t i = 0; i < STORE_TABLES; i++) {
        if (!store_tables[i].after || store_tables[i].local)
            continue;
        snprintf(sql, sizeof sql, "SELECT * FROM %s WHERE run = ?1 AND NOT (%s)", store_tables[i].name,
                 store_tables[i].after);
        TRY(holding_add(store->database, sql, VALUES(value_integer(run), value_integer(task), value_integer(iteration)),
                        &rows, error));
    }
    *digest = (int64_t)(rows.digest & INT64_MAX);
    return OK;
}

/* In a transaction, which reads even after a request to stop: a stopped run asks before it saves its place. */
status store_digest_rows(struct store *store, int64_t run, int64_t task, int64_t iteration, int64_t *digest,
                         struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    return database_end(store->database, began, digest_before(store, run, task, iteration, digest, error), error);
}
