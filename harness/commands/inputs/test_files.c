#include "harness/commands/inputs/test_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/model/tasks.h"
#include "harness/run/settings.h"
#include "harness/scenario/task_settings.h"
#include "results/query.h"
#include "results/store/database.h"

void test_files_close(struct test_files *files)
{
    dataset_close(files->dataset);
    suite_destroy(files->suite);
    files->dataset = NULL;
    files->suite = NULL;
}

/* Opens the dataset if it has the tested items in the same order, else none. */
static void open_same(struct test_files *files, const char *name, const char *tested)
{
    char digest[DIGEST_SIZE];
    struct task_settings task = task_settings_of(files->suite, name);
    if (tasks_open_dataset(&files->dataset, files->suite, &task, NULL, NULL) == OK)
        dataset_digest_items(files->dataset, SPLIT_TEST, digest);
    if (files->dataset == NULL || strcmp(digest, tested) == 0)
        return;
    dataset_close(files->dataset);
    files->dataset = NULL;
}

static void open_task(struct test_files *files, int64_t run, int64_t task)
{
    SCOPED(run_row_free) struct run_row row = {0};
    SCOPED(table_free) struct table found = {0};
    OWNED char *sql =
        path_format("SELECT name, test_digest FROM tasks WHERE (run, task) = (%" PRId64 ", %" PRId64 ") AND "
                    "test_digest IS NOT NULL",
                    run, task);
    test_files_close(files);
    files->run = run;
    files->task = task;
    if (store_read_run(files->store, run, &row, NULL) == OK && query_sql(files->store, sql, &found, NULL) == OK &&
        table_rows(&found) == 1 &&
        suite_parse_stored(&files->suite, row.suite_text, row.suite, settings_sections, NULL, 0, NULL) == OK)
        open_same(files, table_cell_at(&found, 0, 0)->text, table_cell_at(&found, 0, 1)->text);
}

static void test_file(void *context, const char *run, const char *place, struct text *answer)
{
    struct test_files *files = context;
    int64_t number;
    char *end;
    long long task = strtoll(place, &end, 10), image = strtoll(end, &end, 10);
    text_add(answer, "%s", "");
    if (!parse_integer(run, &number) || *end != 0)
        return;
    if (number != files->run || task != files->task)
        open_task(files, number, task);
    if (files->dataset == NULL || image < 0 || (size_t)image >= dataset_size(files->dataset, SPLIT_TEST))
        return;
    OWNED char *name = dataset_item_name(files->dataset, SPLIT_TEST, (size_t)image);
    text_add(answer, "%s", name != NULL ? name : "");
}

status test_files_attach(struct test_files *files, struct error *error)
{
    files->task = -1;
    return database_add_function(store_database(files->store), "test_file", test_file, files, error);
}
