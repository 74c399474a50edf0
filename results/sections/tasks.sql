-- section: 30 Tasks Metrics on each task
-- draw: table 1
-- choice: Metric
-- name: tasks-{metric}
-- caption: {choice}: {formula}. Percent, means over finished seeds.{cut}
-- wide: name value
-- best: {best}
-- range: {low} {high}
WITH observed AS ( -- task 4096: the mean over tasks
    SELECT number, 4096 AS task, transfer, average, last, forgetting, backward_transfer, forward_transfer, gain, zero_shot
    FROM members
    WHERE finished AND number <= 60
    UNION ALL
    SELECT number, task, of_task.transfer, of_task.average, of_task.last, of_task.forgetting, of_task.backward_transfer,
           of_task.forward_transfer, of_task.gain, of_task.zero_shot
    FROM members
    CROSS JOIN task_metrics AS of_task USING (run)
    WHERE finished AND number <= 60
), means AS MATERIALIZED (
    SELECT number, task, place, iif(task = 4096, mean(value), avg(value)) AS value
    FROM (SELECT number, task, place,
                 CASE place WHEN 0 THEN transfer WHEN 1 THEN average WHEN 2 THEN last WHEN 3 THEN forgetting
                            WHEN 4 THEN backward_transfer WHEN 5 THEN forward_transfer WHEN 6 THEN gain ELSE zero_shot END AS value
          FROM observed
          CROSS JOIN metric_names)
    GROUP BY number, task, place
)
SELECT metric_names.title AS choice, metric, formula, best, iif(place IN (0, 1, 2, 7), 0, NULL) AS low,
       iif(place IN (0, 1, 2, 7), 100, NULL) AS high,
       iif((SELECT count(*) FROM configurations) > 60, ' The configurations with the highest Last.', '') AS cut,
       label AS configuration, columns.name AS name, value
FROM metric_names
JOIN configurations ON number <= 60
JOIN (SELECT task, name FROM board UNION ALL SELECT 4096, 'mean') AS columns
LEFT JOIN means USING (number, place, task)
WHERE (SELECT count(*) FROM board) > 1 AND place IN (SELECT place FROM means WHERE task = 4096 AND value IS NOT NULL)
      AND EXISTS (SELECT 1 FROM members WHERE finished AND last IS NOT NULL)
ORDER BY place, number, columns.task
