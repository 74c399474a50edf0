-- Of the runs of `examined`: the last test of each task.
placed AS ( -- the number of a task's first class among those of all tasks
    SELECT run, task, tasks.name AS name, classes, sum(classes) OVER (PARTITION BY run ORDER BY task) - classes AS first,
           setting IN ('x_tail', 'class_incremental', 'open_domain') AS joint
    FROM examined
    JOIN runs USING (run)
    JOIN tasks USING (run)
), tested AS (
    SELECT run, task, name, classes, first, joint, max(after_task) AS after_task
    FROM placed
    JOIN per_image USING (run, task)
    GROUP BY run, task
)
