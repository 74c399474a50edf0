/* The life of a run: found or created, locked, its rows committed, rewound, ended. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "results/store/holding.h"
#include "results/store/live.h"
#include "results/store/store_internal.h"

static const char *const status_names[] = {"running", "stopped", "finished", "failed"};

const char *run_status_name(enum run_status standing)
{
    return status_names[standing];
}

static status run_status_parse(const struct store *store, const char *name, enum run_status *parsed,
                               struct error *error)
{
    for (size_t i = 0; i < sizeof status_names / sizeof *status_names; i++) {
        *parsed = (enum run_status)i;
        if (strcmp(name, status_names[i]) == 0)
            return OK;
    }
    return error_set(error, ERROR_FORMAT, "%s: a run has the unknown status \"%.40s\"", store_path(store), name);
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
        TRY(rows_insert(store, (enum insert)row->kind, row->values, row->count, error));
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

status store_run_find(struct store *store, const char *suite_hash, int64_t seed, int64_t *run, enum run_status *past,
                      struct error *error)
{
    *run = 0;
    struct statement *statement;
    TRY(statement_open(&statement, store->database, "SELECT run, status FROM runs WHERE suite_hash = ?1 AND seed = ?2",
                       error));
    bool row = false;
    status result = statement_bind(statement, VALUES(value_text(suite_hash), value_integer(seed)), error);
    if (result == OK)
        result = statement_step(statement, &row, error);
    if (result == OK && row)
        result = run_status_parse(store, statement_text(statement, 1), past, error);
    if (result == OK && row)
        *run = statement_integer(statement, 0);
    statement_close(statement);
    return result;
}

int64_t store_run_process(struct store *store, int64_t run)
{
    struct statement *statement;
    bool row;
    if (statement_open(&statement, store->database, "SELECT process FROM runs WHERE run = ?1", NULL) != OK)
        return 0;
    bool found = statement_bind(statement, VALUES(value_integer(run)), NULL) == OK &&
                 statement_step(statement, &row, NULL) == OK && row;
    int64_t process = found ? statement_integer(statement, 0) : 0;
    statement_close(statement);
    return process;
}

/* *id 0: the next free one. */
static status insert_run(struct store *store, const struct run_description *run, int64_t *id, struct error *error)
{
    TRY(store_run_once(
        store,
        "INSERT INTO runs (suite, suite_hash, suite_text, setting, method, policy, selector, selection, task_order, "
        "model, backend, \"precision\", program_version, seed, tasks, trainable_parameters, settings_hash, folder, "
        "run, "
        "status, started, host, process) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
        "nullif(?16, 0), ?17, ?18, nullif(?19, 0), 'running', strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), '', 0)",
        VALUES(value_text(run->suite), value_text(run->suite_hash), value_text(run->suite_text),
               value_text(run->setting), value_text(run->method), value_text(run->policy), value_text(run->selector),
               value_text(run->selection), value_text(run->order), value_text(run->model), value_text(run->backend),
               value_text(run->precision), value_text(run->program_version), value_integer(run->seed),
               value_integer(run->tasks), value_integer(run->trainable_parameters), value_text(run->settings_hash),
               value_text(run->folder), value_integer(*id)),
        error));
    *id = database_last_row(store->database);
    TRY(store_insert_settings(store, *id, run->settings, run->setting_count, error));
    return store_insert_inputs(store, *id, run->inputs, run->input_count, error);
}

static status refuse_used_run(struct store *store, int64_t run, struct error *error)
{
    struct statement *statement;
    TRY(statement_open(&statement, store->database, "SELECT suite, seed, process, host FROM runs WHERE run = ?1",
                       error));
    bool row = false;
    status result = statement_bind(statement, VALUES(value_integer(run)), error);
    if (result == OK)
        result = statement_step(statement, &row, error);
    if (result == OK)
        result = error_set(error, ERROR_BUSY,
                           "%s: in use by another run: run %" PRId64 " (suite %.100s, seed %" PRId64
                           ") is being written by process %" PRId64
                           " on %.100s; wait for it, stop it, or name another database",
                           store_path(store), run, statement_text(statement, 0), statement_integer(statement, 1),
                           statement_integer(statement, 2), statement_text(statement, 3));
    statement_close(statement);
    return result;
}

/* A finished run stays finished. */
static status take_over(struct store *store, int64_t run, struct error *error)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    return store_run_once(
        store,
        "UPDATE runs SET host = ?2, process = ?3, status = iif(status = 'finished', status, 'running'), "
        "finished = iif(status = 'finished', finished, NULL), message = NULL WHERE run = ?1",
        VALUES(value_integer(run), value_text(host), value_integer(getpid())), error);
}

/* Locks the run while its row is being made or looked at. */
static status lock_run(struct store *store, int64_t run, bool *taken, struct error *error)
{
    TRY(lock_take(&store->locks, run, 0, taken, error));
    return *taken ? OK : refuse_used_run(store, run, error);
}

/* Inside a transaction, so that no other process finds the run between its row and its lock. */
static status start_run(struct store *store, const struct run_description *description, struct run_start *start,
                        bool *taken, struct error *error)
{
    TRY(store_run_find(store, description->suite_hash, description->seed, &start->run, &start->past, error));
    start->created = start->run == 0;
    if (start->created)
        TRY(insert_run(store, description, &start->run, error));
    TRY(lock_run(store, start->run, taken, error));
    return take_over(store, start->run, error);
}

/* Ends the transaction; the run is held when all went well. */
static status end_start(struct store *store, bool began, const struct run_start *start, bool taken, status result,
                        struct error *error)
{
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
    *start = (struct run_start){.past = RUN_RUNNING};
    bool taken = false, began;
    TRY(database_begin(store->database, &began, error));
    status result = start_run(store, description, start, &taken, error);
    return end_start(store, began, start, taken, result, error);
}

static status record_end(struct store *store, int64_t run, enum run_status end, const char *message,
                         struct error *error)
{
    if (end == RUN_FINISHED && run == store->held)
        TRY(holding_check(store, error));
    return store_run_once(store,
                          "UPDATE runs SET finished = iif(status = 'finished', finished, "
                          "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')), status = ?2, message = ?3 WHERE run = ?1",
                          VALUES(value_integer(run), value_text(run_status_name(end)), value_text(message)), error);
}

static status claim_run(struct store *store, enum run_claim claim, const struct run_description *description,
                        struct run_start *start, bool *taken, struct error *error)
{
    TRY(lock_run(store, start->run, taken, error));
    start->created = claim == RUN_ANEW;
    if (start->created) {
        TRY(store_erase_rows(store, start->run, error));
        TRY(insert_run(store, description, &start->run, error));
    }
    return take_over(store, start->run, error);
}

status store_run_claim(struct store *store, int64_t run, enum run_claim claim,
                       const struct run_description *description, struct run_start *start, struct error *error)
{
    *start = (struct run_start){.run = run, .past = RUN_STOPPED};
    bool taken = false, began;
    TRY(database_begin(store->database, &began, error));
    status result = claim_run(store, claim, description, start, &taken, error);
    return end_start(store, began, start, taken, result, error);
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

/* Rows after a checkpoint, per table; ?2, ?3: its task and iteration. Rows of a task's end go with the whole task.
 * `digested` tables are part of store_digest_rows. */
static const struct {
    const char *table, *after;
    bool digested;
} places[] = {
    {"steps", "(task, iteration) > (?2, ?3)", true},
    {"expert_events", "(task, iteration) > (?2, ?3) OR (task = ?2 AND event = 'freeze')", true},
    {"merge_effects", "(task, known) > (?2, ?3)", true},
    {"expert_counts", "task >= ?2", true},
    {"skipped_steps", "task >= ?2", true},
    {"selector_thresholds", "task >= ?2", true},
    {"router_choices", "after_task >= ?2", true},
    {"per_image", "after_task >= ?2", true},
    {"class_experts", "after_task >= ?2", true},
    {"patch_experts", "after_task >= ?2", true},
    {"evaluations", "after_task >= ?2", true},
    {"timings", "(task, iteration) > (?2, ?3)", false},
    {"artifacts", "task >= max(?2, 0)", false},
};
enum { PLACES = sizeof places / sizeof *places };

static status delete_after(struct store *store, size_t place, int64_t run, int64_t task, int64_t iteration,
                           struct error *error)
{
    char sql[256];
    snprintf(sql, sizeof sql, "DELETE FROM %s WHERE run = ?1 AND (%s)", places[place].table, places[place].after);
    return store_run_once(store, sql, VALUES(value_integer(run), value_integer(task), value_integer(iteration)), error);
}

status store_run_rewind(struct store *store, int64_t run, int64_t task, int64_t iteration, struct error *error)
{
    bool began;
    TRY(database_begin(store->database, &began, error));
    status result = OK;
    for (size_t i = 0; i < PLACES && result == OK; i++)
        result = delete_after(store, i, run, task, task < 0 ? -1 : iteration, error);
    if (result == OK && run == store->held)
        result = holding_read(store, &store->rows, error);
    return database_end(store->database, began, result, error);
}

static status digest_rows(struct store *store, int64_t run, int64_t task, int64_t iteration, int64_t *digest,
                          struct error *error)
{
    struct held_rows rows = {0};
    for (size_t i = 0; i < PLACES; i++) {
        char sql[256];
        snprintf(sql, sizeof sql, "SELECT * FROM %s WHERE run = ?1 AND NOT (%s)", places[i].table, places[i].after);
        if (places[i].digested)
            TRY(holding_add(store->database, sql,
                            VALUES(value_integer(run), value_integer(task), value_integer(iteration)), &rows, error));
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
    return database_end(store->database, began, digest_rows(store, run, task, iteration, digest, error), error);
}
