/* Internals of store.h for the folders of results/; other folders include store.h alone. */
#pragma once

#include "core/text.h"
#include "results/store.h"
#include "results/store/database.h"

/* --- The tables with the rows of a run --- This list has what schema.sql does not say; columns and keys are the
 * schema's. Insert, rewind, digest, erase, join and repeat read this list. A new table is a table of schema.sql and a
 * line of store.c. */

enum { STORE_TABLES = 25, TABLE_COLUMNS = 32 /* of a table, at most */ };

/* The effect of a row with the key of an existing one: it fails; it is left out; it replaces the row; it fails unless
 * it is the same. */
enum table_again { AGAIN_FAILS, AGAIN_KEEPS, AGAIN_REPLACES, AGAIN_IS_SAME };

struct store_table {
    const char *name;
    const char *after; /* SQL of rows after a checkpoint, at iteration ?3 of task ?2; NULL: a rewind keeps all */
    bool local;        /* depends on the clock, the machine or its folders, or was computed after the run */
    bool optional;     /* a repetition may have none: they depend on settings that do not change a run */
    enum table_again again;
    const char *changed;       /* of AGAIN_IS_SAME: what to do when it is not */
    const char *computed, *by; /* a column that no row names, and the SQL that computes it of the others (:task) */
};

/* Each after those that it refers to; the first is `runs`. */
extern const struct store_table store_tables[STORE_TABLES];

/* --- Locks between processes ---
 * A lock is one byte of a small file beside the database, held by the open file (fcntl F_OFD_SETLK): the kernel releases
 * it when its process ends in any way, and two stores in one process exclude each other, too. The database itself cannot
 * serve: closing a second descriptor of it would drop SQLite's own locks. The file's content belongs to live.h. */

struct lock_file {
    int descriptor; /* −1: not open */
    char *path;
    const struct stop *stop; /* ends waiting; may be NULL */
};

/* Opens "DATABASE-lock". A reader creates nothing, and a missing file leaves its locks not open. */
status lock_file_open(struct lock_file *locks, const char *database_path, bool writable, struct error *error);
void lock_file_close(struct lock_file *locks); /* gives up all; harmless when not open */

/* Waits up to patience milliseconds, or until a request to stop; *taken is whether the lock is held. number ≥ 0; taking
 * a lock again changes nothing. */
status lock_take(struct lock_file *locks, int64_t number, int patience, bool *taken, struct error *error);
void lock_give(struct lock_file *locks, int64_t number);

/* --- The store --- */

/* Rows of a run, to be compared with what they were. */
struct held_rows {
    bool known;
    int64_t count;
    uint64_t digest; /* independent of their order and of the run's number */
};

struct store {
    struct database *database;
    struct lock_file locks;
    struct statement *insert[STORE_TABLES]; /* NULL: none yet */
    bool published;                         /* results/query.h: they are attached */
    bool collects;                          /* between store_begin and store_commit */
    struct pending_row **pending;
    size_t pending_count;
    int64_t held;          /* the run that was started last and has not ended; 0: none */
    struct held_rows rows; /* of it, after its last commit */
};

/* Gives this connection the program's own views in the temporary schema, where a temporary view is read before a
 * table of the same name. */
status store_hide_views(struct store *store, struct error *error);

/* Writes the rows that wait for store_commit, and forgets them. */
status pending_write(struct store *store, struct error *error);
void pending_clear(struct store *store);

/* --- The rows of one run --- */

/* A database and its statements, opened when first used; zero-initialised but for the first two, which are borrowed. */
struct run_rows {
    struct database *database;
    const char *name; /* in messages */
    struct table_access {
        struct statement *read, *write, *text;
    } table[STORE_TABLES];
};
void run_rows_close(struct run_rows *rows);

/* The differences between a run's rows in two databases; zero-initialised, and added to. */
struct row_difference {
    struct text only_first, only_second; /* first row that the other database lacks; empty: none */
    struct text contradiction;           /* in words, empty: none */
};
void row_difference_free(struct row_difference *difference);
status run_rows_compare_table(struct run_rows *first, int64_t first_run, struct run_rows *second, int64_t second_run,
                              size_t table, struct row_difference *difference, struct error *error);

/* Appends all rows of source's run to target's run *number; 0 is a new one, whose number is set. */
status run_rows_copy(struct run_rows *source, int64_t run, struct run_rows *target, int64_t *number,
                     struct error *error);

/* The same within a database, of all that a run has of its tasks and that does not depend on clock and machine. */
status run_rows_copy_tasks(struct database *database, int64_t from, int64_t to, struct error *error);

enum run_part {
    RUN_ALL,
    RUN_HELD,   /* tables that only store_commit and store_run_rewind change while the run is held */
    RUN_BEFORE, /* a checkpoint; no tables that depend on the clock or the machine's folders */
    RUN_AFTER   /* a checkpoint */
};

/* DELETEs a part of a run or, with the verb "SELECT *", adds its rows to *read. Values: run, task and iteration. */
status run_rows_take(struct database *database, const char *verb, enum run_part part,
                     const struct value run_and_place[3], struct held_rows *read, struct error *error);
status run_rows_erase(struct database *database, int64_t run, struct error *error); /* all of them */
