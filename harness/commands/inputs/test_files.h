/* The files of test images, for SQL: test_file(run, 'task image') is a path below the dataset's folder.
 *
 *     struct test_files files = {.store = store};
 *     TRY(test_files_attach(&files, error));                // outlives the queries of the store
 *     test_files_close(&files);
 */
#pragma once

#include "datasets/dataset.h"
#include "harness/config/suite.h"
#include "results/store.h"

struct test_files {
    struct store *store;
    int64_t run, task; /* whose dataset is open */
    struct suite *suite;
    struct dataset *dataset; /* NULL: it is not there, or other images are */
};

/* The function looks a file up in the data that the run's suite names. It gives "" where they are not found or are no
 * longer those of the test. */
status test_files_attach(struct test_files *files, struct error *error);
void test_files_close(struct test_files *files);
