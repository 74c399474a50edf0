/* A request to stop while a report is drawn, which no signal hits for certain; folder.sh has the rest of what becomes of a folder. */
#include "tests/test.h"

#include <stdlib.h>

#include "core/file.h"
#include "core/threads.h"
#include "results/report.h"
#include "tests/results/sample.h"

TEST(a_stop_leaves_nothing)
{
    char *database = sample_path("results.db"), *folder = path_format("%s-report", database);
    struct stop stop = {.signal = 1};
    struct report_request request = {.folder = folder, .best = 1, .stop = &stop};
    struct report_outcome outcome;
    struct store *store;
    assert_ok(store_open(&store, database, STORE_WRITE, &error));
    sample_finished_run(store, 1);
    assert_fails(report_write(store, &request, &outcome, &error), ERROR_STOPPED, "nothing was written to");
    assert_false(file_exists(folder));
    store_close(store);
    free(folder);
    sample_remove(database);
}
