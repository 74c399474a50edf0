#include "harness/sweep/sweep.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/file.h"
#include "harness/sweep/log_tail.h"
#include "results/store/join.h"
#include "results/store/live.h"

/* FOLDER/databases/RUN.db; the caller frees. */
static char *part_database(const struct sweep *sweep, size_t run)
{
    return path_format("%s/databases/%zu.db", sweep->folder, run);
}

/* --- Standings --- */

/* The last message of a run that is not running. */
static void read_last_words(const struct sweep *sweep, size_t index)
{
    char message[LOG_TAIL_MESSAGE], *log = path_format("%s/logs/%zu.log", sweep->folder, index);
    log_tail_line(log, 0, message);
    free(sweep->runs[index].failure);
    sweep->runs[index].failure = *message != 0 ? path_format("%s (%s)", message, log) : NULL;
    free(log);
}

/* A database without the run, or one that cannot be read yet, belongs to a run that has just started. */
static status look_into(struct sweep *sweep, size_t index, struct store *store, enum sweep_parts parts,
                        struct error *error)
{
    struct sweep_run *run = &sweep->runs[index];
    enum run_status past = RUN_RUNNING;
    int64_t row;
    TRY(store_run_find(store, sweep->configurations[run->configuration].hash, (int64_t)run->seed, &row, &past, error));
    if (row == 0)
        return OK;
    if (past == RUN_FINISHED) {
        run->standing = SWEEP_FINISHED;
        run->row = 0;
        return OK;
    }
    if (live_has_process(store, row))
        run->standing = SWEEP_ELSEWHERE;
    else if (parts == PARTS_GO_ON)
        run->standing = SWEEP_UNFINISHED;
    return OK;
}

static status look_at(struct sweep *sweep, size_t index, enum sweep_parts parts, struct error *error)
{
    struct store *store;
    char *path = part_database(sweep, index);
    status result = OK;
    if (file_exists(path) && store_open(&store, path, STORE_READ, NULL) == OK) {
        result = look_into(sweep, index, store, parts, error);
        store_close(store);
    }
    free(path);
    if (result == OK && parts == PARTS_GO_ON && sweep_wants(&sweep->runs[index]))
        read_last_words(sweep, index);
    return result;
}

status sweep_parts_look(struct sweep *sweep, enum sweep_parts parts, struct error *error)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].standing != SWEEP_FINISHED) {
            if (parts == PARTS_GO_ON)
                sweep->runs[i].standing = SWEEP_MISSING;
            TRY(look_at(sweep, i, parts, error));
        }
    return OK;
}

/* --- Joining --- */

static status join(const struct sweep *sweep, const char *const *paths, size_t count, const struct log *log,
                   struct error *error)
{
    struct join_counts *counts = xcalloc(count, sizeof *counts);
    struct join_settings settings = {.log = log};
    status result = join_databases(sweep->database, paths, count, &settings, counts, error);
    if (result == OK)
        log_info(log, "%zu run%s joined into %s", count, count == 1 ? "" : "s", sweep->database);
    free(counts);
    return result;
}

status sweep_parts_collect(const struct sweep *sweep, const struct log *log, struct error *error)
{
    size_t count = 0;
    char **paths = xcalloc(sweep->run_count, sizeof *paths);
    status result = OK;
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].standing == SWEEP_FINISHED && sweep->runs[i].row == 0)
            paths[count++] = part_database(sweep, i);
    if (count > 0)
        result = join(sweep, (const char *const *)paths, count, log, error);
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    return result;
}
