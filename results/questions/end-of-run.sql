-- column: row hidden
-- column: * right 1
-- wide: title value

-- The end of a run: its accuracy matrix and, with more than one task and a whole matrix, Transfer, Average and Last below it.
WITH
-- include: accuracies
, of_run AS MATERIALIZED (
    SELECT metrics.* FROM chosen JOIN metrics USING (run) WHERE tasks > 1
), of_tasks AS MATERIALIZED (
    SELECT name, task_metrics.* FROM of_run JOIN task_metrics USING (run) JOIN tasks USING (run, task)
), measured (row, title, name, value) AS (
    SELECT NULL, NULL, NULL, NULL WHERE false
-- each main: UNION ALL SELECT 1e6 + {place}, '{title}', name, of_tasks.{name} FROM of_run JOIN of_tasks USING (run) WHERE of_run.{name} IS NOT NULL
-- each main: UNION ALL SELECT 1e6 + {place}, '{title}', NULL, {name} FROM of_run WHERE {name} IS NOT NULL
)
SELECT row, after, title, value
FROM (
    SELECT after_task AS row, after, title, value, place FROM accuracies
    UNION ALL
    SELECT row, measured.title, columns.title, measured.value, place
    FROM measured
    JOIN columns ON name IS iif(place < 9e15, columns.title, NULL)
)
ORDER BY row, place
