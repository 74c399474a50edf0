-- title: a finished run has the accuracies of its method
WITH RECURSIVE trained (after_task) AS (
    SELECT -1
    UNION ALL
    SELECT after_task + 1 FROM trained WHERE after_task < (SELECT max(tasks) FROM runs) - 1
), grid AS (
    SELECT run, task, after_task,
           CASE WHEN after_task < 0 THEN cells <> 'trained'
                WHEN alone THEN after_task = task
                WHEN joint THEN after_task = tasks - 1
                WHEN setting = 'class_incremental' THEN after_task >= task
                WHEN setting IN ('open_domain', 'domain_incremental') THEN 1
                ELSE cells <> 'zero-shot' END AS expected
    FROM runs
    JOIN facts USING (run)
    CROSS JOIN tasks USING (run)
    CROSS JOIN trained ON after_task < runs.tasks
    WHERE status = 'finished'
)
SELECT 'matrix' AS what, run, 'task ' || task || ', after task ' || after_task AS "where",
       iif(expected, 'an accuracy', 'none with this method') AS expected, iif(expected, 'none', 'an accuracy') AS found
FROM grid
LEFT JOIN evaluations USING (run, task, after_task)
WHERE grid.expected = (images IS NULL)
