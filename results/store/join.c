#include "results/store/join.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "results/store/run_rows.h"
#include "results/store/store_internal.h"

struct joining {
    const struct join_settings *settings;
    const char *output_name;
    const char *const *inputs;
    size_t count;
    struct join_counts *counts;
    struct store *output;
    struct run_rows target;
    size_t conflicts;
    struct text first_conflict;
};

struct input {
    struct joining *joining;
    struct run_rows rows;
    struct join_counts *counts;
};

/* A run of an input. */
struct candidate {
    int64_t run, seed;
    const char *suite, *hash; /* borrowed from the statement */
    bool finished;
};

/* Copies the run to its number in the output, 0: a new one. */
static status copy_run(struct joining *joining, struct run_rows *source, int64_t run, int64_t number,
                       struct error *error)
{
    TRY(run_rows_copy(source, run, &joining->target, &number, error));
    return database_run(joining->target.database, "INSERT OR REPLACE INTO temp.origin VALUES (?1, ?2)",
                        VALUES(value_integer(number), value_text(source->name)), error);
}

/* The run keeps its number in the output. */
static status complete_run(struct joining *joining, struct run_rows *source, const struct candidate *candidate,
                           int64_t number, struct error *error)
{
    bool taken;
    TRY(lock_take(&joining->output->locks, number, 0, &taken, error));
    if (!taken)
        return error_set(error, ERROR_BUSY,
                         "%s: run %" PRId64 " (suite %.100s, seed %" PRId64
                         ") is being written, but %s has more of its rows; wait for the run or stop it",
                         joining->output_name, number, candidate->suite, candidate->seed, source->name);
    status result = run_rows_erase(joining->output->database, number, error);
    NEXT(result, copy_run(joining, source, candidate->run, number, error));
    lock_give(&joining->output->locks, number);
    return result;
}

static void note_conflict(struct joining *joining, const struct candidate *candidate,
                          const struct row_difference *difference)
{
    struct text words = {0};
    text_add(&words, "suite %.100s, seed %" PRId64 " (configuration %.8s): %s", candidate->suite, candidate->seed,
             candidate->hash, difference->contradiction.data);
    log_warn(joining->settings->log, "%s%s", words.data, joining->settings->keep_first ? "; the first is kept" : "");
    if (joining->conflicts++ == 0)
        text_add(&joining->first_conflict, "%s", words.data);
    text_free(&words);
}

static status join_known(struct input *input, const struct candidate *candidate, int64_t number, bool finished,
                         struct error *error)
{
    struct joining *joining = input->joining;
    struct row_difference difference = {0};
    struct statement *origin; /* the file that the output's rows are from, if it is an input */
    TRY(database_row(joining->target.database, "SELECT name FROM temp.origin WHERE run = ?1",
                     VALUES(value_integer(number)), &origin, error));
    joining->target.name = origin != NULL ? statement_text(origin, 0) : joining->output_name;
    status result = OK;
    for (size_t i = 0; i < STORE_TABLES && difference.contradiction.size == 0; i++)
        if (!store_tables[i].local)
            NEXT(result,
                 run_rows_compare_table(&joining->target, number, &input->rows, candidate->run, i, &difference, error));
    statement_close(origin);
    bool fuller = difference.only_second.size > 0;
    if (result == OK && difference.contradiction.size > 0) {
        input->counts->conflicts++;
        note_conflict(joining, candidate, &difference);
    } else if (result == OK && (fuller || (!difference.only_first.size && candidate->finished && !finished))) {
        input->counts->completed++;
        result = complete_run(joining, &input->rows, candidate, number, error);
    } else {
        input->counts->known++;
    }
    row_difference_free(&difference);
    return result;
}

/* A row of: run, seed, suite, suite_hash, whether it is finished. */
static status join_run(void *context, struct statement *row, struct error *error)
{
    struct input *input = context;
    struct candidate candidate = {statement_integer(row, 0), statement_integer(row, 1), statement_text(row, 2),
                                  statement_text(row, 3), statement_integer(row, 4) != 0};
    int64_t number;
    enum run_status past = RUN_RUNNING;
    TRY(store_run_find(input->joining->output, candidate.hash, candidate.seed, &number, &past, error));
    input->counts->runs++;
    if (number)
        return join_known(input, &candidate, number, past == RUN_FINISHED, error);
    input->counts->added++;
    return copy_run(input->joining, &input->rows, candidate.run, 0, error);
}

/* Reads one state of the input, though its runs may continue. */
static status join_input(struct joining *joining, size_t i, struct error *error)
{
    struct store *store;
    const char *name = joining->inputs[i];
    TRY(store_open_stoppable(&store, name, STORE_READ, joining->settings->stop, error));
    struct input input = {joining, {.database = store->database, .name = name}, &joining->counts[i]};
    status result = database_execute(store->database, "BEGIN", error);
    NEXT(result, database_each(store->database,
                               "SELECT run, seed, suite, suite_hash, status = 'finished' FROM runs ORDER BY run",
                               NO_VALUES, join_run, &input, error));
    run_rows_close(&input.rows);
    store_close(store);
    return result;
}

static status join_inputs(struct joining *joining, struct error *error)
{
    for (size_t i = 0; i < joining->count; i++)
        TRY(join_input(joining, i, error));
    if (joining->conflicts == 0 || joining->settings->keep_first)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: nothing is joined, because %zu run%s disagree%s between the files, the first: %s; leave one of "
        "the files out, or keep the first of each (--keep-first)",
        joining->output_name, joining->conflicts, joining->conflicts == 1 ? "" : "s",
        joining->conflicts == 1 ? "s" : "", joining->first_conflict.data);
}

/* In one transaction. */
static status join_into(struct joining *joining, const char *path, struct error *error)
{
    bool began;
    TRY(store_open_stoppable(&joining->output, path, STORE_WRITE, joining->settings->stop, error));
    struct database *output = joining->output->database;
    joining->target = (struct run_rows){.database = output, .name = joining->output_name};
    TRY(database_begin(output, &began, error));
    status result = database_execute(output, "CREATE TEMP TABLE origin (run INTEGER PRIMARY KEY, name TEXT)", error);
    NEXT(result, join_inputs(joining, error));
    run_rows_close(&joining->target);
    return database_end(output, began, result, error);
}

/* Moves the log into the file, which is then complete alone, and gives it its name, unless a file with that name was
 * created meanwhile. */
static status name_database(struct joining *joining, const char *path, struct error *error)
{
    int64_t busy;
    const char *output = joining->output_name;
    TRY(database_integer(joining->output->database, "PRAGMA wal_checkpoint(TRUNCATE)", &busy, error));
    store_close(joining->output);
    joining->output = NULL;
    if (busy)
        return error_set(error, ERROR_BUSY, "%s: another program reads it; end it or try again", path);
    TRY(file_sync_all(path, error));
    if (renameat2(AT_FDCWD, path, AT_FDCWD, output, RENAME_NOREPLACE) != 0 &&
        ((errno != EINVAL && errno != ENOSYS) || rename(path, output) != 0)) /* a file system without the flag */
        return error_errno(error, errno, "%s: cannot be created", output);
    file_sync_name(output);
    return OK;
}

/* Joins in a new folder, which also takes the files that SQLite keeps beside the database. */
static status join_new(struct joining *joining, struct error *error)
{
    struct temporary folder;
    TRY(temporary_create_folder(&folder, joining->output_name, error));
    char *path = path_format("%s/database", folder.path);
    status result = join_into(joining, path, error);
    NEXT(result, name_database(joining, path, error));
    store_close(joining->output);
    joining->output = NULL;
    temporary_remove(&folder);
    free(path);
    return result;
}

/* Before anything is created. */
static status check_inputs(const struct joining *joining, struct error *error)
{
    struct stat out, in;
    bool exists = stat(joining->output_name, &out) == 0;
    TRY(database_check_log(joining->output_name, error));
    for (size_t i = 0; i < joining->count; i++) {
        const char *input = joining->inputs[i];
        if (exists && stat(input, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return error_set(error, ERROR_ARGUMENT, "%s: is the output and an input as well", input);
        if (!file_exists(input))
            return error_set(error, ERROR_IO, "%s: there is no such file", input);
    }
    return OK;
}

status join_databases(const char *output, const char *const *inputs, size_t count, const struct join_settings *settings,
                      struct join_counts *counts, struct error *error)
{
    struct joining joining = {
        .settings = settings, .output_name = output, .inputs = inputs, .count = count, .counts = counts};
    memset(counts, 0, count * sizeof *counts);
    TRY(check_inputs(&joining, error));
    char *folder = path_parent(output);
    if (folder)
        temporary_clear(folder);
    free(folder);
    status result = file_exists(output) ? join_into(&joining, output, error) : join_new(&joining, error);
    store_close(joining.output);
    text_free(&joining.first_conflict);
    return result;
}
