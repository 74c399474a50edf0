cells AS MATERIALIZED (
    SELECT run, after_task, task, name, correct, images, 100.0 * correct / images AS accuracy
    FROM chosen
    JOIN evaluations USING (run)
    JOIN tasks USING (run, task)
    WHERE :dataset IS NULL OR name = :dataset
), lines AS ( -- a row in part has no mean
    SELECT run, after_task, coalesce((SELECT name FROM tasks WHERE tasks.run = chosen.run AND task = after_task), 'zero-shot') AS after,
           CASE WHEN count(*) = iif(setting = 'class_incremental' AND after_task >= 0, after_task + 1, tasks)
                THEN iif(setting IN ('class_incremental', 'domain_incremental'),
                         100.0 * sum(correct) FILTER (WHERE after_task NOT BETWEEN 0 AND task - 1)
                         / sum(images) FILTER (WHERE after_task NOT BETWEEN 0 AND task - 1), avg(accuracy)) END AS mean
    FROM chosen
    JOIN cells USING (run)
    GROUP BY run, after_task
), columns AS (
    SELECT name AS title, min(run * 4096 + task) AS place FROM cells GROUP BY name
    UNION ALL
    SELECT 'mean', 9e15 WHERE :dataset IS NULL
), accuracies AS ( -- rows of the matrix, a value per column
    SELECT lines.run AS run, lines.after_task AS after_task, after, title, place, iif(place = 9e15, mean, accuracy) AS value
    FROM lines
    CROSS JOIN columns
    LEFT JOIN cells ON cells.run = lines.run AND cells.after_task = lines.after_task AND cells.name = title AND place < 9e15
)
