/* The rows of one run in a database, table by table: compares them with another database's, copies and erases them. Of the
 * columns, neither `run` counts, whose number differs between files, nor a row's own number. Internal to results/. */
#ifndef MTIL_RESULTS_STORE_RUN_ROWS_H
#define MTIL_RESULTS_STORE_RUN_ROWS_H

#include "core/text.h"
#include "results/store/database.h"
#include "results/store/tables.h"

/* A database and its statements, opened when first used; zero-initialised but for the first two, which are borrowed. */
struct run_rows {
    struct database *database;
    const char *name; /* in messages */
    struct table_access {
        struct statement *read, *write;
        size_t keys; /* of the columns, the first */
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
/* The same for the tables that a repetition has, until a contradiction. */
status run_rows_compare(struct run_rows *first, int64_t first_run, struct run_rows *second, int64_t second_run,
                        struct row_difference *difference, struct error *error);

/* Appends all rows of source's run to target's run *number; 0 is a new one, whose number is set. */
status run_rows_copy(struct run_rows *source, int64_t run, struct run_rows *target, int64_t *number,
                     struct error *error);

/* Within a transaction. */
status run_rows_erase(struct database *database, int64_t run, struct error *error);

#endif
