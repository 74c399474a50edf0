-- column: * right 1
-- wide: title value

-- The last row of each run's accuracy matrix, in percent: a column per task of any of them, and the mean so far.
WITH cells AS (
    SELECT run, coalesce(trained, 'zero-shot') AS after, name, accuracy,
           iif(setting = 'class_incremental', images, 1) AS weight
    FROM (SELECT run, max(after_task) AS after_task FROM chosen JOIN evaluations USING (run) GROUP BY run)
    JOIN matrix USING (run, after_task)
    JOIN chosen USING (run)
), lines AS (
    SELECT run, after, sum(weight * accuracy) / sum(weight) AS mean FROM cells GROUP BY run
), columns AS (
    SELECT name, min(run * 4096 + task) AS place FROM chosen JOIN tasks USING (run) GROUP BY name
    UNION ALL
    SELECT 'mean', NULL
)
SELECT run, lines.after AS after, columns.name AS title, iif(place IS NULL, mean, accuracy) AS value
FROM lines
CROSS JOIN columns
LEFT JOIN cells USING (run, name)
ORDER BY run, place IS NULL, place
