/* The tables with the rows of a run, as schema.sql does not say it: what a rewind removes, what a repetition compares, and
 * what becomes of a row that is there already. Insert, rewind, digest, erase, join, repeat and holding.h read this list;
 * columns and keys are the schema's. A new table is a table of schema.sql and a line of tables.c. Internal to results/.
 */
#ifndef MTIL_RESULTS_STORE_TABLES_H
#define MTIL_RESULTS_STORE_TABLES_H

#include <stdbool.h>

enum { STORE_TABLES = 24 };

/* What a row with the key of an existing one does: fail; nothing; replace it; fail unless it is the same. */
enum table_again { AGAIN_FAILS, AGAIN_KEEPS, AGAIN_REPLACES, AGAIN_IS_SAME };

struct store_table {
    const char *name;
    const char *after; /* SQL of rows after a checkpoint, at iteration ?3 of task ?2; NULL: a rewind keeps all */
    bool local;        /* depends on the clock, the machine or its folders, or was computed after the run */
    bool optional;     /* a repetition may have none: they depend on settings that do not change a run */
    enum table_again again;
    const char *changed;       /* of AGAIN_IS_SAME: what to do when it is not */
    const char *computed, *by; /* a column, and the SQL that computes it; ?n are the columns in their order */
};

/* Each after those that it refers to; the first is `runs`. */
extern const struct store_table store_tables[STORE_TABLES];

/* Whether store_commit alone adds and store_run_rewind alone removes its rows while a run goes on. */
bool table_is_held(const struct store_table *table);

#endif
