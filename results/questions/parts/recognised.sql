-- The first run of the best drawn configuration of whose test images anything is kept, its tasks, and its last tests.
recognised AS MATERIALIZED (
    SELECT run, label, drawn.label || ', run ' || run AS of FROM drawn
    WHERE turn = 0 AND run IN (SELECT run FROM test_labels UNION SELECT run FROM task_classes)
    ORDER BY number
    LIMIT 1
)
