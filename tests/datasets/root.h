/* A data root around each test of a file, datasets that are opened with options of their readers, and refusals.
 *
 *     TEST_WITH(names_are_counted, root_setup, root_teardown)
 *     {
 *         scratch_copy(&scratch, ROOTS "dtd");
 *         struct dataset *dataset = root_open("dtd", scratch.path, "on_missing=skip");
 *         dataset_close(dataset);
 *         scratch_write_text(&scratch, "dtd/classnames.txt", "Braid\n");
 *         root_refused("dtd", NULL, "expected 5 names");
 *     }
 */
#pragma once

#include "datasets/dataset.h"
#include "tests/datasets/scratch.h"

#define ROOTS FIXTURES "/data/roots/"

extern struct scratch scratch;
int root_setup(void **state);
int root_teardown(void **state);

/* Options are "key=value key=value", of the reader and of every dataset in a suite, or NULL. */
status root_try(struct dataset **dataset, const char *name, const char *root, const char *options,
                const struct log *log, struct error *error);
struct dataset *root_open(const char *name, const char *root, const char *options);

/* The dataset cannot be opened in the scratch folder, and the error has the words. */
void root_refused(const char *name, const char *options, const char *words);

/* The same after a file has been written: rows until one without name. A file stays for the rows after it. */
struct root_refusal {
    const char *name, *options;
    const char *file, *text; /* NULL: nothing is written */
    const char *words;
};
void root_refuse_all(const struct root_refusal *refusals);

/* A context for logs: the last warning. */
struct root_log {
    struct log log;
    char warning[512];
};
void root_log_start(struct root_log *log);

/* Of the item, without freeing. */
void root_expect_item(const struct dataset *dataset, enum split split, size_t item, const char *name);
