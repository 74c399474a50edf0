/* What the results say of a run's data: its order, its setting, its images. */
#include <stdlib.h>
#include <string.h>

#include "harness/run/recorder.h"
#include "results/query.h"
#include "tests/harness/small_run.h"

/* A run's rows as they are when it starts, and the answer to a question about them, a cell of text each. */
static struct table ask(struct small_run *run, const char *sql)
{
    struct store *store;
    struct run_start start;
    struct table table = {0};
    must(store_open(&store, small_run_file(run, "a.db"), STORE_WRITE, &error));
    struct recorder recorder = {.store = store, .run = run->experiment};
    struct inputs inputs = {.hash = "of nothing"};
    must(record_start(&recorder, &inputs, &(struct continuation){0}, &start, &error));
    must(record_tasks(&recorder, &error));
    must(record_tasks(&recorder, &error)); /* a resumed run says it again */
    must(store_run_end(store, recorder.id, RUN_STOPPED, NULL, &error));
    must(query_sql(store, sql, &table, &error));
    store_close(store);
    return table;
}

RUN_TEST(a_full_shot_run, NULL)
{
    struct table table =
        ask(run, "SELECT setting, task_order, group_concat(training_images || '/' || test_images, ' ') "
                 ", min(length(test_digest)), count(DISTINCT test_digest) FROM runs JOIN tasks USING (run)");
    assert_string_equal(table.cell[0].text, "full_shot");
    assert_string_equal(table.cell[1].text, "small");
    assert_string_equal(table.cell[2].text, "12/6 18/9 24/12");
    assert_int_equal(table.cell[3].integer, 64);
    assert_int_equal(table.cell[4].integer, 3);
    table_free(&table);
}

RUN_TEST(a_few_shot_run, "data.shots=2", "data.order=third,first", "data.order_name=II", NULL)
{
    assert_int_equal(dataset_size(run->experiment->data.tasks[0].dataset, SPLIT_TRAIN), 8);
    assert_int_equal(dataset_size(run->experiment->data.tasks[0].dataset, SPLIT_TEST), 12);
    struct table table =
        ask(run, "SELECT setting, task_order, group_concat(training_images || '/' || test_images, ' ') "
                 "FROM runs JOIN tasks USING (run)");
    assert_string_equal(table.cell[0].text, "few_shot");
    assert_string_equal(table.cell[1].text, "II");
    assert_string_equal(table.cell[2].text, "8/12 4/6");
    table_free(&table);
}

/* The same images under another order, batch and number of threads; others under another seed. */
TEST(few_shots_depend_on_the_seed_alone)
{
    static const char *const first[] = {"data.shots=3", "tasks.second.train=100", NULL},
                             *const other[] = {"data.shots=3",  "tasks.second.train=100", "data.order=second,third",
                                               "run.threads=1", "training.batch=3",       NULL};
    char *names[9];
    struct small_run run;
    size_t differ = 0;
    small_run_open(&run, 4, first);
    for (size_t i = 0; i < 9; i++)
        names[i] = small_run_keep(dataset_item_name(run.experiment->data.tasks[1].dataset, SPLIT_TRAIN, i));
    small_run_reopen(&run, 4, other);
    assert_int_equal(dataset_size(run.experiment->data.tasks[0].dataset, SPLIT_TRAIN), 9);
    for (size_t i = 0; i < 9; i++) {
        char *name = small_run_keep(dataset_item_name(run.experiment->data.tasks[0].dataset, SPLIT_TRAIN, i));
        assert_string_equal(name, names[i]);
    }
    small_run_reopen(&run, 5, first);
    for (size_t i = 0; i < 9; i++) {
        char *name = small_run_keep(dataset_item_name(run.experiment->data.tasks[1].dataset, SPLIT_TRAIN, i));
        differ += strcmp(name, names[i]) != 0;
    }
    assert_true(differ > 0);
    small_run_close(&run);
}
