/* Results that were made elsewhere, as a run like others: the same tables, with the identity of suite and data.
 *
 *     struct imported imported = {.unit = 100};
 *     TRY(imported_read(&imported, "matrix.jsonl", error));               // as often as there are files; "-": standard input
 *     TRY(imported_place(&imported, run, error));                         // with the run's tasks: what each value is of
 *     TRY(imported_record(&imported, run, store, stop, &result, error));  // all or nothing
 *     imported_free(&imported);
 */
#pragma once

#include <jansson.h>

#include "harness/run/run.h"
#include "results/store.h"

struct imported_file {
    char *path;
    uint64_t bytes;
    char digest[DIGEST_SIZE];
};

/* One line, or one row of CSV. */
struct imported_line {
    const char *file; /* for messages; borrowed */
    size_t number;
    json_t *record; /* {"after_task": …, "acc_per_task": […]} or {…, "task": …, "predicted": […]} */
};

/* The result of one test. */
struct imported_cell {
    int64_t after; /* −1: before training */
    size_t task;
    int64_t correct;
    uint16_t *predicted; /* [test images]; NULL: of a matrix */
};

struct imported {
    double unit;   /* the accuracy that means all images: 100 (percent) or 1; 0: not stated */
    bool predicts; /* predictions, not matrices */
    struct imported_line *lines;
    size_t count;
    struct imported_cell *cells;
    size_t cell_count;
    size_t inexact; /* accuracies that are no multiple of one image; the first of them: */
    char first[256];
    struct imported_file *files;
    size_t file_count;
};

/* JSON lines or CSV whose header names the tasks. */
status imported_read(struct imported *imported, const char *path, struct error *error);

/* ERROR_FORMAT with file and line for results that do not fit the tasks. */
status imported_place(struct imported *imported, const struct run *run, struct error *error);

struct imported_result {
    int64_t run;
    bool known; /* the same results were there before */
};

/* ERROR_FORMAT, with both files, where other results are stored for the same run. */
status imported_record(const struct imported *imported, struct run *run, struct store *store, const struct stop *stop,
                       struct imported_result *result, struct error *error);
void imported_free(struct imported *imported);
