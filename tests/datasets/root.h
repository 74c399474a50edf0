/* A folder around each test, in which it runs; datasets whose root it is, opened with options of their readers.
 *
 *     ROOT_TEST(names_are_counted)
 *     {
 *         scratch_run(&scratch, "cp -r " ROOTS "dtd/. .");
 *         struct dataset *dataset = root_open("dtd", scratch.path, "on_missing=skip");
 *         dataset_close(dataset);
 *     }
 */
#pragma once

#include "datasets/dataset.h"
#include "tests/datasets/scratch.h"

#define ROOTS FIXTURES "/data/roots/"

extern struct scratch scratch;
int root_setup(void **state);
int root_teardown(void **state);
#define ROOT_TEST(name) TEST_WITH(name, root_setup, root_teardown)

/* Options are "key=value key=value", of the reader and of every dataset in a suite, or NULL. */
status root_try(struct dataset **dataset, const char *name, const char *root, const char *options,
                const struct log *log, struct error *error);
struct dataset *root_open(const char *name, const char *root, const char *options);

size_t root_count(const struct dataset *dataset, enum split split, size_t label); /* images of a class */

/* A context for logs: how many warnings there were, and the last one. */
struct root_log {
    struct log log;
    size_t warnings;
    char warning[1024];
};
void root_log_start(struct root_log *log);
