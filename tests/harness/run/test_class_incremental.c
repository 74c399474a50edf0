/* Class-incremental runs: which cells they have, and what Avg and Last are (run/test_every_method.c has every method). */
#include "tests/harness/whole_run.h"

/* Six classes in an order of their own. */
#define SCENARIO                                                                                                       \
    "data.order=third", "tasks.third.classes=6", "data.split_by=order", "data.class_order=5 0 3 4 1 2",                \
        "evaluation.label_space=seen", "training.epochs=1", "training.iterations=1000",                                \
        "training.reference_iterations=yes", "run.log_every=1", "adapter.routers=one", "selector.kind=none",           \
        "adapter.freeze_top_k=0"

#define CELLS "SELECT group_concat(after_task || ':' || task, ' ') FROM (SELECT * FROM evaluations ORDER BY 3, 2)"

/* A row has the tasks so far; Avg and Last are over images, so that the first task, of half the classes, counts double. */
RUN_TEST(accuracies_are_over_all_classes_seen, SCENARIO, "data.first=4", "data.parts=2", NULL)
{
    must(whole_run(run, "a.db", NULL));
    expect_text(run, "a.db", CELLS, "-1:0 -1:1 -1:2 0:0 1:0 1:1 2:0 2:1 2:2");
    expect_text(run, "a.db",
                "SELECT group_concat(images, ' ') FROM (SELECT images FROM evaluations WHERE after_task = 2)",
                "12 3 3");
    expect_text(run, "a.db",
                "WITH rows AS (SELECT after_task, 100.0 * sum(correct) / sum(images) AS accuracy FROM evaluations "
                "GROUP BY after_task) "
                "SELECT iif(abs(metrics.average - (SELECT avg(accuracy) FROM rows WHERE after_task >= 0)) < 1e-9 "
                "AND abs(metrics.last - (SELECT accuracy FROM rows WHERE after_task = 2)) < 1e-9 "
                "AND abs(metrics.zero_shot - (SELECT accuracy FROM rows WHERE after_task = -1)) < 1e-9 "
                "AND transfer IS NULL, 'so', average || ' ' || last) FROM metrics",
                "so");
    expect_text(run, "a.db", "SELECT setting || ' ' || selector || ' ' || selection FROM runs",
                "class_incremental none none");
    expect_text(run, "a.db", "SELECT count(*) || '' FROM router_choices", "0");
    /* 4 classes of 6 images and 1 of 6 in batches of 8: an epoch and one iteration more */
    expect_text(run, "a.db",
                "SELECT group_concat(last, ' ') FROM (SELECT max(iteration) AS last FROM steps GROUP BY task)",
                "4 2 2");
    expect_text(run, "a.db", "SELECT group_concat(length(labels) || ' ') FROM test_labels",
                "24 ,6 ,6 "); /* two bytes each */
    expect_text(run, "a.db", "SELECT count(*) || '' FROM task_classes", "6");
    assert_int_equal(whole_run_faults(run, "a.db", whole_run_cells), 0);
}
