/* A thin wrapper of SQLite for the files of this folder: status codes, one message per fault, typed values.
 *
 *     struct database *database;
 *     TRY(database_open(&database, "results.sqlite", STORE_WRITE, NULL, error));
 *     struct statement *statement;
 *     TRY(statement_open(&statement, database, "SELECT run FROM runs WHERE seed = ?1", error));
 *     TRY(statement_bind(statement, VALUES(value_integer(7)), error));
 *     for (bool row; (result = statement_step(statement, &row, error)) == OK && row;)
 *         use(statement_integer(statement, 0));
 *
 * database.c and statement.c include sqlite3.h, others do not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/scope.h"
#include "core/status.h"

/* --- Values, and rows of named ones --- */

enum value_kind { VALUE_NULL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT, VALUE_BLOB };

struct value {
    enum value_kind kind;
    union {
        int64_t integer;
        double real;
        struct {
            const void *data; /* borrowed; text has a NUL after its size */
            size_t size;
        } bytes;
    };
};

struct named_value {
    const char *name;
    struct value value;
};

static inline struct value value_null(void)
{
    return (struct value){.kind = VALUE_NULL};
}

static inline struct value value_integer(int64_t integer)
{
    return (struct value){.kind = VALUE_INTEGER, .integer = integer};
}

/* 0 becomes the null value. */
static inline struct value value_count(int64_t count)
{
    return count != 0 ? value_integer(count) : value_null();
}

static inline struct value value_real(double real)
{
    return (struct value){.kind = VALUE_REAL, .real = real};
}

static inline struct value value_blob(const void *data, size_t size)
{
    return (struct value){.kind = VALUE_BLOB, .bytes = {data, size}};
}

/* NULL becomes the null value. */
static inline struct value value_text(const char *text)
{
    return text ? (struct value){.kind = VALUE_TEXT, .bytes = {text, strlen(text)}} : value_null();
}

/* An argument list's values and their number, as the last arguments before error; with names: {"task", value}. */
#define VALUES(...) ((struct value[]){__VA_ARGS__}), sizeof((struct value[]){__VA_ARGS__}) / sizeof(struct value)
#define NO_VALUES ((struct value *)NULL), 0
#define NAMED(...)                                                                                                     \
    ((struct named_value[]){__VA_ARGS__}), sizeof((struct named_value[]){__VA_ARGS__}) / sizeof(struct named_value)

/* --- Databases --- */

struct database;
struct stop; /* core/threads.h */
struct statement;

enum store_mode {
    STORE_READ,  /* the file must exist; works on read-only media */
    STORE_WRITE, /* creates the file */
    STORE_MEMORY /* empty, in memory; messages call it by the path */
};

/* Opens a file and checks no more than SQLite's own header. After a request to stop (NULL: nobody asks), statements that
 * read end with ERROR_STOPPED, and so do waits for another program's lock, after a moment in which a last write may still
 * succeed. */
status database_open(struct database **database, const char *path, enum store_mode mode, const struct stop *stop,
                     struct error *error);
void database_close(struct database *database);
SCOPED_POINTER(struct database, database_close)

const char *database_path(const struct database *database);      /* as given to database_open */
const char *database_full_path(const struct database *database); /* absolute, links resolved */

enum { DATABASE_PATIENCE = 120000 }; /* milliseconds that a write waits for another program's, unless set */
void database_set_patience(struct database *database, int milliseconds);

/* A function of two texts ("" for null) for the statements of this connection, with a context that outlives its use.
 * It writes its value to answer; nothing written is null. */
struct text; /* core/text.h */
typedef void database_function(void *context, const char *a, const char *b, struct text *answer);
status database_add_function(struct database *database, const char *name, database_function *call, void *context,
                             struct error *error);

/* Runs every statement of a script. */
status database_execute(struct database *database, const char *script, struct error *error);

/* The first column of the first row of a query, 0 without one. */
status database_integer(struct database *database, const char *sql, int64_t *integer, struct error *error);
status database_ask(struct database *database, const char *sql, const struct value *values, size_t count,
                    int64_t *integer, struct error *error);

/* Prepares and runs a statement that is used rarely and has no rows of interest. */
status database_run(struct database *database, const char *sql, const struct value *values, size_t count,
                    struct error *error);

/* ERROR_IO when the file is missing or empty but has a log of another database beside it, which SQLite would apply or
 * delete. */
status database_check_log(const char *path, struct error *error);

/* ERROR_IO when FILE, FILE-wal, FILE-shm or FILE-lock was deleted, renamed or replaced since the last check, or cut so
 * that the pages no longer fit together: what is committed would be lost. */
status database_check_files(struct database *database, struct error *error);

/* *whole: the pages of the file fit together, as a new connection reads them, which has none in memory. A failure
 * means that the pages could not be checked. */
status database_check_pages(const struct database *database, bool *whole, struct error *error);

/* Begins a transaction with the write lock, and checks the files; *began is false if one was open already. */
status database_begin(struct database *database, bool *began, struct error *error);
/* Ends it if it began: commits and checks the files again if result is OK, else rolls back. Returns result or the failure
 * of the commit. */
status database_end(struct database *database, bool began, status result, struct error *error);

void database_rollback(struct database *database);

int64_t database_last_row(const struct database *database); /* id of the last inserted row */
int64_t database_changes(const struct database *database);  /* rows the last statement wrote */

/* The caller closes the statement before the database. sql holds one statement. */
status statement_open(struct statement **statement, struct database *database, const char *sql, struct error *error);

/* The same for SQL from outside: ERROR_ARGUMENT for a statement that does more than read. */
status statement_open_reader(struct statement **statement, struct database *database, const char *sql,
                             struct error *error);
void statement_close(struct statement *statement); /* NULL is allowed */
SCOPED_POINTER(struct statement, statement_close)

/* Starts the statement anew with ?1, ?2, … set to values, which are borrowed until the next bind or close; values
 * without a parameter are ignored. */
status statement_bind(struct statement *statement, const struct value *values, size_t count, struct error *error);

/* The same by name, ":dataset"; a name that the statement does not have is ignored. */
status statement_bind_named(struct statement *statement, const struct named_value *values, size_t count,
                            struct error *error);

/* Whether its parameters have these names, ":task" for "task", in this order. */
bool statement_takes(const struct statement *statement, const struct named_value *values, size_t count);

/* *row: there is a row to read. After the last one the statement can be bound again. */
status statement_step(struct statement *statement, bool *row, struct error *error);

/* Binds and runs a statement that returns no rows. */
status statement_run(struct statement *statement, const struct value *values, size_t count, struct error *error);

/* Columns of the current row; text and blobs are borrowed until the next step. */
size_t statement_columns(const struct statement *statement);
const char *statement_title(const struct statement *statement, size_t column);
struct value statement_value(struct statement *statement, size_t column);
int64_t statement_integer(struct statement *statement, size_t column);  /* 0 if it is not a number */
const char *statement_text(struct statement *statement, size_t column); /* "" for null */

/* Copies a text; NULL for null. The caller frees. */
char *statement_string(struct statement *statement, size_t column);

/* The first row of an answer, which the caller closes; NULL without one. */
status database_row(struct database *database, const char *sql, const struct value *values, size_t count,
                    struct statement **row, struct error *error);

/* Calls take for every row of an answer until it fails; NULL: the rows are of no interest. */
typedef status row_taker(void *context, struct statement *row, struct error *error);
status database_each(struct database *database, const char *sql, const struct value *values, size_t count,
                     row_taker *take, void *context, struct error *error);
