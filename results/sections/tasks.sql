-- section: 30 Tasks Metrics on each task
-- draw: table
-- choice: Metric
-- name: tasks-{metric}
-- caption: {choice}: {formula}. Percent, means over finished seeds.{cut}
-- wide: name value
-- column: * 1
-- column: mean 1
-- best: {best}
-- range: {low} {high}
WITH cells AS (
    SELECT number, place, CASE place WHEN 0 THEN avg(task_metrics.transfer) WHEN 1 THEN avg(task_metrics.average)
                                            WHEN 2 THEN avg(task_metrics.last) WHEN 3 THEN avg(task_metrics.forgetting)
                                            WHEN 4 THEN avg(task_metrics.backward_transfer)
                                            WHEN 5 THEN avg(task_metrics.forward_transfer)
                                            WHEN 6 THEN avg(task_metrics.gain) ELSE avg(task_metrics.zero_shot) END AS value,
           task
    FROM (SELECT run, number FROM members WHERE number <= 60 AND finished)
    JOIN task_metrics USING (run)
    CROSS JOIN metric_names
    GROUP BY number, task, place
), means AS (
    SELECT number, place,
           CASE place WHEN 0 THEN mean(transfer) WHEN 1 THEN mean(average) WHEN 2 THEN mean(last)
                                   WHEN 3 THEN mean(forgetting) WHEN 4 THEN mean(backward_transfer)
                                   WHEN 5 THEN mean(forward_transfer) WHEN 6 THEN mean(gain)
                                   ELSE mean(zero_shot) END AS mean
    FROM members
    CROSS JOIN metric_names
    WHERE finished
    GROUP BY number, place
)
SELECT metric_names.title AS choice, metric, formula, best, iif(place IN (0, 1, 2, 7), 0, NULL) AS low,
       iif(place IN (0, 1, 2, 7), 100, NULL) AS high,
       iif((SELECT count(*) FROM configurations) > 60, ' The configurations with the highest Last.', '') AS cut,
       label AS configuration, board.name AS name, value, mean
FROM metric_names
JOIN configurations ON number <= 60
CROSS JOIN board
LEFT JOIN means USING (number, place)
LEFT JOIN cells USING (number, place, task)
WHERE (SELECT count(*) FROM board) > 1 AND place IN (SELECT place FROM means WHERE mean IS NOT NULL)
      AND EXISTS (SELECT 1 FROM members WHERE finished AND last IS NOT NULL)
ORDER BY place, number, board.task
