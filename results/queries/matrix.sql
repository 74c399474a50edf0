-- The accuracy matrix of each run: a row per trained task, a column per task of any of the runs and the row's mean, in
-- percent. A row without evaluations is left out; an incomplete one has no mean. Follows the CTE `chosen`; ?11: a task
-- or null. Columns: as query/wide.c expects.
, cells AS (
    SELECT run, after_task, task, name, correct, images, 100.0 * correct / images AS accuracy
    FROM chosen
    JOIN evaluations USING (run)
    JOIN tasks USING (run, task)
    WHERE ?11 IS NULL OR name = ?11
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
    SELECT 'mean', NULL WHERE ?11 IS NULL
)
SELECT lines.run AS block, (SELECT count(*) FROM columns) AS width, lines.run AS run, suite, method, policy, seed,
       coalesce(trained.name, 'zero-shot') AS after, columns.name AS title, iif(place IS NULL, mean, accuracy) AS value
FROM lines
LEFT JOIN tasks AS trained ON trained.run = lines.run AND trained.task = lines.after_task
CROSS JOIN columns
LEFT JOIN cells ON cells.run = lines.run AND cells.after_task = lines.after_task AND cells.name = columns.name
                   AND place IS NOT NULL
ORDER BY lines.run, lines.after_task, place IS NULL, place
