-- section: 204 Matrix Values in cells, without decimals where the file is narrow
-- title: matrix
-- draw: heat 1
-- x: test on task
-- y: after training on
-- value: accuracy, %
-- range: 0 10
-- wide: column value
WITH tasks(task) AS (
    SELECT 1 UNION ALL SELECT task + 1 FROM tasks WHERE task < 9
)
SELECT 'task ' || after.column1 AS after, task AS column, iif(task = 2, NULL, task + 0.6) AS value, task = 3 AS framed,
       after.column1 > 1 AS extra
FROM (VALUES (1), (2)) AS after
JOIN tasks
