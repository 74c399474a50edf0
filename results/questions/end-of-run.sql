-- column: row hidden
-- column: * right 1
-- wide: title value

-- The end of a run: its accuracy matrix and, with more than one task and a whole matrix, Transfer, Average and Last below it.
WITH
-- include: accuracies
, metric (row, title) AS (VALUES (1e6, 'Transfer'), (2e6, 'Average'), (3e6, 'Last')
), measured AS (
    SELECT run, name, transfer, average, last FROM task_metrics JOIN tasks USING (run, task)
    UNION ALL
    SELECT run, NULL, transfer, average, last FROM metrics
)
SELECT row, after, title, value
FROM (
    SELECT after_task AS row, after, title, value, place FROM accuracies
    UNION ALL
    SELECT row, metric.title, columns.title, CASE row WHEN 1e6 THEN m.transfer WHEN 2e6 THEN m.average ELSE m.last END, place
    FROM chosen
    JOIN metrics AS whole USING (run)
    JOIN metric ON tasks > 1 AND NOT (row = 1e6 AND whole.transfer IS NULL)
    JOIN columns
    JOIN measured AS m ON m.run = chosen.run AND name IS iif(place < 9e15, columns.title, NULL)
)
ORDER BY row, place
