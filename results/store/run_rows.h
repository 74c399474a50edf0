/* The rows of one run in a database, table by table: compares them with another database's, copies, deletes and digests
 * them. `run` does not count, whose number differs between files; nor does, in comparisons, a row's own number. Internal to
 * results/. */
#pragma once

#include "results/store/store_internal.h"

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

enum run_part {
    RUN_ALL,
    RUN_HELD,   /* tables to which store_commit alone adds and of which store_run_rewind alone removes rows meanwhile */
    RUN_BEFORE, /* a checkpoint; no tables that depend on the clock or the machine's folders */
    RUN_AFTER   /* a checkpoint */
};

/* DELETEs a part of a run or, with the verb "SELECT *", adds its rows to *read. Values: run, task and iteration. */
status run_rows_take(struct database *database, const char *verb, enum run_part part,
                     const struct value run_and_place[3], struct held_rows *read, struct error *error);
status run_rows_erase(struct database *database, int64_t run, struct error *error); /* all of them */
