-- section: 30 Tasks Metrics on each task
-- draw: table 1
-- choice: Metric
-- name: tasks-{metric}
-- caption: {choice}: {formula}. Percent, means over finished seeds.{cut}
-- wide: name value
-- best: {best}
-- range: {low} {high}
WITH measured AS ( -- task 4096: the mean over tasks
    SELECT * FROM task_metrics
    UNION ALL
    SELECT run, 4096
-- each: , {name}
    FROM members
), means AS MATERIALIZED (
    SELECT number, task, place, mean(CASE metric_list.name
-- each: WHEN '{name}' THEN measured.{name}
           END) AS value
    FROM members
    CROSS JOIN measured USING (run)
    CROSS JOIN metric_list
    WHERE finished AND number <= 60
    GROUP BY number, task, place
)
SELECT metric_list.title AS choice, metric_list.name AS metric, formula, best, iif(shaded, low, NULL) AS low, iif(shaded, high, NULL) AS high,
       iif((SELECT count(*) FROM configurations) > 60, ' The configurations with the highest Last.', '') AS cut,
       label AS configuration, coalesce(board.name, 'mean') AS name, value
FROM means
JOIN (SELECT *, low = 0 AND best <> 'lowest' AS shaded FROM metric_list) AS metric_list USING (place)
JOIN configurations USING (number)
LEFT JOIN board USING (task)
WHERE (SELECT count(*) FROM board) > 1 AND place IN (SELECT place FROM means WHERE task = 4096 AND value IS NOT NULL)
ORDER BY place, number, means.task
