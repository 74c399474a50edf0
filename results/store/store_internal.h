/* Internals of store.h for the folders of results/; other folders include store.h alone. */
#ifndef MTIL_RESULTS_STORE_STORE_INTERNAL_H
#define MTIL_RESULTS_STORE_STORE_INTERNAL_H

#include "core/text.h"
#include "results/store.h"
#include "results/store/database.h"
#include "results/store/lock.h"
#include "results/store/pending.h"
#include "results/store/tables.h"

enum { TABLE_COLUMNS = 32 }; /* of a table, at most */

/* The statement that adds rows to a table, opened when first used, and the table's columns. */
struct insert {
    struct statement *statement;
    size_t columns;
    char *column[TABLE_COLUMNS];
};
void insert_close(struct insert *insert);

/* The rows of a run, as holding.h reads them. */
struct held_rows {
    bool known;
    int64_t count;
    uint64_t digest; /* independent of their order */
};

struct store {
    struct database *database;
    struct lock_file locks;
    struct insert insert[STORE_TABLES];
    bool published; /* results/query.h: they are attached */
    bool collects;  /* between store_begin and store_commit */
    struct pending pending;
    int64_t held;          /* the run that was started last and has not ended; 0: none */
    struct held_rows rows; /* of it, after its last commit */
};

/* Writes a row of store_add at once; [columns of the table]. */
status rows_insert(struct store *store, size_t table, const struct value *values, struct error *error);

/* "7", "nothing", "12 bytes" */
void value_describe(const struct value *value, struct text *text);

/* The bytes of test_labels, whatever their number; the caller frees labels. */
status labels_unpack(const struct value *blob, uint16_t **labels, size_t *count, struct error *error);

status store_add_inputs(struct store *store, int64_t run, const struct input_row *inputs, size_t count,
                        struct error *error);

#endif
