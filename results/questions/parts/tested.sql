placed AS ( -- the number of a task's first class among those of all tasks
    SELECT run, task, name, classes, sum(classes) OVER (PARTITION BY run ORDER BY task) - classes AS first,
           setting IN ('x_tail', 'class_incremental') AS joint
    FROM chosen
    JOIN tasks USING (run)
), tested AS (
    SELECT run, task, max(after_task) AS after_task
    FROM placed
    JOIN per_image USING (run, task)
    GROUP BY run, task
)
