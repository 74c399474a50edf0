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
    SELECT run, 4096, transfer, average, last, forgetting, backward_transfer, forward_transfer, gain, zero_shot FROM members
), means AS MATERIALIZED (
    SELECT number, task, place,
           mean(CASE place WHEN 0 THEN measured.transfer WHEN 1 THEN measured.average WHEN 2 THEN measured.last
                           WHEN 3 THEN measured.forgetting WHEN 4 THEN measured.backward_transfer
                           WHEN 5 THEN measured.forward_transfer WHEN 6 THEN measured.gain ELSE measured.zero_shot END) AS value
    FROM members
    CROSS JOIN measured USING (run)
    CROSS JOIN metric_names
    WHERE finished AND number <= 60
    GROUP BY number, task, place
)
SELECT metric_names.title AS choice, metric, formula, best, iif(place IN (0, 1, 2, 7), 0, NULL) AS low,
       iif(place IN (0, 1, 2, 7), 100, NULL) AS high,
       iif((SELECT count(*) FROM configurations) > 60, ' The configurations with the highest Last.', '') AS cut,
       label AS configuration, coalesce(board.name, 'mean') AS name, value
FROM means
JOIN metric_names USING (place)
JOIN configurations USING (number)
LEFT JOIN board USING (task)
WHERE (SELECT count(*) FROM board) > 1 AND place IN (SELECT place FROM means WHERE task = 4096 AND value IS NOT NULL)
ORDER BY place, number, means.task
