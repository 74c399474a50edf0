-- title: accuracy on each task after each task, a row per trained task
-- column: run,suite,method,policy,seed once
-- column: row hidden
-- column: * right 1
-- block: run
-- wide: title value
WITH cells AS (
    SELECT run, after_task, task, name, correct, images, 100.0 * correct / images AS accuracy
    FROM chosen
    JOIN evaluations USING (run)
    JOIN tasks USING (run, task)
    WHERE :dataset IS NULL OR name = :dataset
), lines AS (
    SELECT run, after_task, suite, method, policy, seed,
           CASE WHEN count(*) = iif(setting = 'class_incremental' AND after_task >= 0, after_task + 1, tasks)
                THEN iif(setting = 'class_incremental', 100.0 * sum(correct) / sum(images), avg(accuracy)) END AS mean
    FROM chosen
    JOIN cells USING (run)
    GROUP BY run, after_task
), columns AS (
    SELECT name, min(run * 4096 + task) AS place FROM cells GROUP BY name
    UNION ALL
    SELECT 'mean', NULL WHERE :dataset IS NULL
)
SELECT lines.run AS run, lines.after_task AS row, suite, method, policy, seed,
       coalesce(trained.name, 'zero-shot') AS after, columns.name AS title, iif(place IS NULL, mean, accuracy) AS value
FROM lines
LEFT JOIN tasks AS trained ON trained.run = lines.run AND trained.task = lines.after_task
CROSS JOIN columns
LEFT JOIN cells ON cells.run = lines.run AND cells.after_task = lines.after_task AND cells.name = columns.name
                   AND place IS NOT NULL
ORDER BY lines.run, lines.after_task, place IS NULL, place
