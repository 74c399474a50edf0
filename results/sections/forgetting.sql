-- section: 50 Forgetting Forgetting
-- title: Accuracy on each task, %, after 0 (zero-shot), 1, 2, … tasks trained
-- draw: line 1 points
-- caption: Lines: means over seeds. Bands: from the least to the greatest seed. Dotted: when the panel's own task has been trained.
-- x: tasks trained
-- y: accuracy, %
WITH cells AS (
    SELECT number, task, after_task, avg(100.0 * correct / images) AS y, min(100.0 * correct / images) AS low,
           max(100.0 * correct / images) AS high
    FROM drawn
    JOIN evaluations USING (run)
    GROUP BY number, task, after_task
), rows AS (
    SELECT -1 AS after_task UNION ALL SELECT task FROM board
)
SELECT title AS panel, board.task + 1 AS mark, label AS series, colour, rows.after_task + 1 AS x, y, low, high
FROM board
JOIN configurations ON colour IS NOT NULL
CROSS JOIN rows
LEFT JOIN cells USING (number, task, after_task)
WHERE wanted
ORDER BY board.task, number, x
