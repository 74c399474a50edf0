/* Internals of store.h for the folders of results/; other folders include store.h alone. */
#ifndef MTIL_RESULTS_STORE_STORE_INTERNAL_H
#define MTIL_RESULTS_STORE_STORE_INTERNAL_H

#include "results/store.h"
#include "results/store/database.h"
#include "results/store/lock.h"
#include "results/store/pending.h"

/* Rows that are written often keep their statement; its SQL is in rows.c. */
enum insert {
    INSERT_TASK_CLASS,
    INSERT_TEST_LABELS,
    INSERT_TASK_SIMILARITY,
    INSERT_EVALUATION,
    INSERT_PER_IMAGE,
    INSERT_CLASS_EXPERT,
    INSERT_PATCH_EXPERTS,
    INSERT_EXPERT_COUNT,
    INSERT_EXPERT_EVENT,
    INSERT_MERGE_EFFECT,
    INSERT_ROUTER_CHOICE,
    INSERT_THRESHOLD,
    INSERT_STEP,
    INSERT_SKIPPED_STEPS,
    INSERT_TIMING,
    INSERT_ARTIFACT,
    INSERT_COUNT
};

/* The rows of a run, as holding.h reads them. */
struct held_rows {
    bool known;
    int64_t count;
    uint64_t digest; /* independent of their order */
};

struct store {
    struct database *database;
    struct lock_file locks;
    struct statement *insert[INSERT_COUNT]; /* opened when first used */
    bool published;                         /* results/query/published.h: they are attached */
    bool collects;                          /* between store_begin and store_commit */
    struct pending pending;
    int64_t held;          /* the run that was started last and has not ended; 0: none */
    struct held_rows rows; /* of it, after its last commit */
};

/* Writes a row at once; values[0] is its run. */
status rows_insert(struct store *store, enum insert kind, const struct value *values, size_t count,
                   struct error *error);

/* classes.c: the bytes of test_labels, whatever their number; the caller frees labels. */
status labels_unpack(const struct value *blob, uint16_t **labels, size_t *count, struct error *error);

/* Prepares and runs SQL that is used rarely. */
status store_run_once(struct store *store, const char *sql, const struct value *values, size_t count,
                      struct error *error);

/* erase.c: of a run, in all tables; within a transaction. */
status store_erase_rows(struct store *store, int64_t run, struct error *error);

/* store_inputs.c */
status store_insert_inputs(struct store *store, int64_t run, const struct input_row *inputs, size_t count,
                           struct error *error);
status store_insert_settings(struct store *store, int64_t run, const struct setting_row *settings, size_t count,
                             struct error *error);

#endif
