/* Shared by join*.c; other folders include join.h alone. */
#ifndef MTIL_RESULTS_STORE_JOIN_INTERNAL_H
#define MTIL_RESULTS_STORE_JOIN_INTERNAL_H

#include "core/text.h"
#include "results/store/database.h"

#define JOIN_COLUMNS_LIMIT 64 /* of a table */

/* A table with a column `run`, found in the schema, so that tables of later versions are joined, too. `column` lists
 * the copied columns: neither `run`, whose number differs between files, nor a row's own number. */
struct join_table {
    char *name;
    bool observed; /* the same wherever and whenever the run is repeated */
    size_t columns, keys;
    char *column[JOIN_COLUMNS_LIMIT]; /* keys first */
    struct text read, write, erase;   /* SQL; ?1 is the run, ?2 … the columns */
};

struct join_layout {
    size_t count;
    struct join_table *table; /* each after those that it refers to; the first is `runs` */
};

/* The caller frees with join_layout_free, after a failure too. */
status join_layout_read(struct join_layout *layout, struct error *error);
void join_layout_free(struct join_layout *layout);

/* A database and its statements, opened when first used; name and layout are borrowed. */
struct join_side {
    const struct join_layout *layout;
    struct database *database;
    const char *name;
    struct statement **read, **write; /* per table */
};
status join_side_open(struct join_side *side, const struct join_layout *layout, struct database *database,
                      const char *name, struct error *error);
void join_side_close(struct join_side *side);

/* The differences between a run's rows in two databases. The caller frees with join_difference_free. */
struct join_difference {
    struct text only_first, only_second; /* first row that the other database lacks; empty: none */
    struct text contradiction;           /* in words, empty: none */
};
status join_compare(struct join_side *first, int64_t first_run, struct join_side *second, int64_t second_run,
                    struct join_difference *difference, struct error *error);
/* The same for one table; difference is added to. */
status join_compare_table(struct join_side *first, int64_t first_run, struct join_side *second, int64_t second_run,
                          size_t table, struct join_difference *difference, struct error *error);
void join_difference_free(struct join_difference *difference);

/* Appends all rows of source's run to target's run *number; 0 is a new one, whose number is set. */
status join_copy(struct join_side *source, int64_t run, struct join_side *target, int64_t *number, struct error *error);
status join_erase(struct join_side *target, int64_t run, struct error *error);

#endif
