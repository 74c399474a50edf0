-- title: the router confusion after the last task: true task × chosen, percent
-- column: run once
-- column: after once
-- column: row hidden
-- column: * right 1
-- block: run
-- wide: title value
WITH routed AS (
    SELECT run, max(after_task) AS after_task FROM chosen JOIN router_choices USING (run) GROUP BY run
), totals AS (
    SELECT run, after_task, task, sum(count) AS images
    FROM routed
    JOIN router_choices USING (run, after_task)
    GROUP BY run, after_task, task
), routers AS (
    SELECT run, -1 AS router, 'zero-shot CLIP' AS name FROM routed
    UNION ALL
    SELECT run, task, name FROM routed JOIN tasks USING (run) WHERE task <= after_task
), columns AS (
    SELECT name, min(iif(router < 0, -1, run * 4096 + router)) AS place FROM routers GROUP BY router < 0, name
)
SELECT totals.run AS run, totals.task AS row,
       coalesce(trained.name, 'zero-shot') AS after, tasks.name AS task, columns.name AS title,
       CASE WHEN routers.router IS NOT NULL THEN 100.0 * coalesce(sent.count, 0) / images END AS value
FROM totals
JOIN tasks USING (run, task)
LEFT JOIN tasks AS trained ON trained.run = totals.run AND trained.task = totals.after_task
CROSS JOIN columns
LEFT JOIN routers ON routers.run = totals.run AND routers.name = columns.name AND (routers.router < 0) = (place < 0)
LEFT JOIN router_choices AS sent ON sent.run = totals.run AND sent.after_task = totals.after_task
                                    AND sent.task = totals.task AND sent.router = routers.router
WHERE :dataset IS NULL OR tasks.name = :dataset
ORDER BY totals.run, totals.task, place
-- note:
SELECT 'no selector chose routers in these runs: the router is given with selector oracle, and all tasks share one with none'
WHERE EXISTS (SELECT 1 FROM chosen) AND NOT EXISTS (SELECT 1 FROM chosen WHERE selection NOT IN ('oracle', 'none'))
