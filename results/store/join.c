#include "results/store/join.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/file_writer.h"
#include "results/store/store_internal.h"

struct joining {
    const struct join_settings *settings;
    const char *output_name, *const *names; /* names: of the inputs */
    size_t count;
    struct store *output;
    struct run_rows target, source; /* the output's and the input's */
    struct join_counts *counts;     /* of the input that is joined, and of those after it */
    size_t conflicts;
    struct text first_conflict;
};

/* Columns of an input's runs. */
enum { RUN, SEED, SUITE, HASH, FINISHED };

/* Copies the run to its number in the output, 0: a new one. Conflicts name the file that it came from. */
static status copy_run(struct joining *j, int64_t run, int64_t number, struct error *error)
{
    TRY(run_rows_copy(&j->source, run, &j->target, &number, error));
    return database_run(j->target.database, "INSERT OR REPLACE INTO temp.origin VALUES (?1, ?2)",
                        VALUES(value_integer(number), value_text(j->source.name)), error);
}

/* The run keeps its number in the output. */
static status complete_run(struct joining *j, struct statement *run, int64_t number, struct error *error)
{
    bool taken;
    TRY(lock_take(&j->output->locks, number, 0, &taken, error));
    if (!taken)
        return error_set(error, ERROR_BUSY,
                         "%s: run %" PRId64 " (suite %.100s, seed %" PRId64
                         ") is being written, but %s has more of its rows; wait for the run or stop it",
                         j->output_name, number, statement_text(run, SUITE), statement_integer(run, SEED),
                         j->source.name);
    status result = run_rows_erase(j->target.database, number, error);
    NEXT(result, copy_run(j, statement_integer(run, RUN), number, error));
    lock_give(&j->output->locks, number);
    return result;
}

static void note_conflict(struct joining *j, struct statement *run, const char *contradiction)
{
    SCOPED(text_free) struct text words = {0};
    text_add(&words, "suite %.100s, seed %" PRId64 " (configuration %.8s): %s", statement_text(run, SUITE),
             statement_integer(run, SEED), statement_text(run, HASH), contradiction);
    log_warn(j->settings->log, "%s%s", words.data, j->settings->keep_first ? "; the first is kept" : "");
    if (j->conflicts++ == 0)
        text_add(&j->first_conflict, "%s", words.data);
    j->counts->conflicts++;
}

static status compare_run(struct joining *j, int64_t run, int64_t number, struct row_difference *difference,
                          struct error *error)
{
    SCOPED(statement_close_at) struct statement *origin = NULL;
    TRY(database_row(j->target.database, "SELECT name FROM temp.origin WHERE run = ?1", VALUES(value_integer(number)),
                     &origin, error));
    j->target.name = origin != NULL ? statement_text(origin, 0) : j->output_name;
    for (size_t i = 0; i < STORE_TABLES && difference->contradiction.size == 0; i++)
        if (!store_tables[i].local)
            TRY(run_rows_compare_table(&j->target, number, &j->source, run, i, difference, error));
    return OK;
}

static status join_known(struct joining *j, struct statement *run, int64_t number, bool finished, struct error *error)
{
    SCOPED(row_difference_free) struct row_difference difference = {0};
    status result = compare_run(j, statement_integer(run, RUN), number, &difference, error);
    bool fuller = difference.only_second.size > 0 ||
                  (difference.only_first.size == 0 && statement_integer(run, FINISHED) != 0 && !finished);
    if (difference.contradiction.size > 0) {
        note_conflict(j, run, difference.contradiction.data);
    } else if (result == OK && fuller) {
        j->counts->completed++;
        result = complete_run(j, run, number, error);
    } else {
        j->counts->known++;
    }
    return result;
}

static status join_run(void *context, struct statement *run, struct error *error)
{
    struct joining *j = context;
    int64_t number;
    enum run_status past = RUN_RUNNING;
    TRY(store_run_find(j->output, statement_text(run, HASH), statement_integer(run, SEED), &number, &past, error));
    j->counts->runs++;
    if (number)
        return join_known(j, run, number, past == RUN_FINISHED, error);
    j->counts->added++;
    return copy_run(j, statement_integer(run, RUN), 0, error);
}

/* Reads one state of the input, though its runs may continue. */
static status join_input(struct joining *j, const char *name, struct error *error)
{
    SCOPED(store_close_at) struct store *store = NULL;
    TRY(store_open_stoppable(&store, name, STORE_READ, j->settings->stop, error));
    j->source = (struct run_rows){.database = store->database, .name = name};
    status result = database_execute(store->database, "BEGIN", error);
    NEXT(result, database_each(store->database,
                               "SELECT run, seed, suite, suite_hash, status = 'finished' FROM runs ORDER BY run",
                               NO_VALUES, join_run, j, error));
    run_rows_close(&j->source);
    return result;
}

static status join_inputs(struct joining *j, struct error *error)
{
    TRY(database_execute(j->target.database, "CREATE TEMP TABLE origin (run INTEGER PRIMARY KEY, name TEXT)", error));
    for (size_t i = 0; i < j->count; i++, j->counts++)
        TRY(join_input(j, j->names[i], error));
    if (j->conflicts == 0 || j->settings->keep_first)
        return OK;
    return error_set(
        error, ERROR_FORMAT,
        "%s: nothing is joined, because %zu run%s disagree%s between the files, the first: %s; leave one of "
        "the files out, or keep the first of each (--keep-first)",
        j->output_name, j->conflicts, j->conflicts == 1 ? "" : "s", j->conflicts == 1 ? "s" : "",
        j->first_conflict.data);
}

/* In one transaction. */
static status join_into(struct joining *j, const char *path, struct error *error)
{
    bool began;
    TRY(store_open_stoppable(&j->output, path, STORE_WRITE, j->settings->stop, error));
    j->target = (struct run_rows){.database = j->output->database};
    TRY(database_begin(j->target.database, &began, error));
    status result = join_inputs(j, error);
    run_rows_close(&j->target);
    return database_end(j->target.database, began, result, error);
}

/* Moves the log into the file, which is then complete alone, and gives it its name, unless a file with that name was
 * created meanwhile. */
static status name_database(struct joining *j, const char *path, struct error *error)
{
    int64_t busy;
    const char *output = j->output_name;
    TRY(database_integer(j->output->database, "PRAGMA wal_checkpoint(TRUNCATE)", &busy, error));
    store_close(j->output);
    j->output = NULL;
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
static status join_new(struct joining *j, struct error *error)
{
    struct temporary folder;
    TRY(temporary_create_folder(&folder, j->output_name, error));
    OWNED char *path = path_format("%s/database", folder.path);
    status result = join_into(j, path, error);
    NEXT(result, name_database(j, path, error));
    store_close(j->output);
    j->output = NULL;
    temporary_remove(&folder);
    return result;
}

/* Before anything is created. */
static status check_inputs(const struct joining *j, struct error *error)
{
    struct stat out, in;
    bool exists = stat(j->output_name, &out) == 0;
    TRY(database_check_log(j->output_name, error));
    for (size_t i = 0; i < j->count; i++) {
        const char *input = j->names[i];
        if (exists && stat(input, &in) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            return error_set(error, ERROR_ARGUMENT, "%s: is the output and an input as well", input);
        if (!file_exists(input))
            return error_set(error, ERROR_IO, "%s: there is no such file", input);
    }
    return OK;
}

status join_databases(const char *output, const char *const *names, size_t count, const struct join_settings *settings,
                      struct join_counts *counts, struct error *error)
{
    struct joining j = {.settings = settings, .output_name = output, .names = names, .count = count, .counts = counts};
    memset(counts, 0, count * sizeof *counts);
    TRY(check_inputs(&j, error));
    OWNED char *folder = path_parent(output);
    if (folder)
        temporary_clear(folder);
    status result = file_exists(output) ? join_into(&j, output, error) : join_new(&j, error);
    store_close(j.output);
    text_free(&j.first_conflict);
    return result;
}
