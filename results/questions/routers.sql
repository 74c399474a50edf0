-- title: the router confusion after the last task: true task × chosen, percent
-- empty: no selector chose routers in them: the router is given with selector oracle, and all tasks share one with none
-- column: run,after once
-- column: row hidden
-- column: * right 1
-- block: run
-- wide: title value
WITH parts AS (
    SELECT run, run AS part FROM chosen
),
-- include: routed
, totals AS (
    SELECT part AS run, task, max(after_task) AS after_task FROM routed GROUP BY part, task
), routers AS (
    SELECT run, -1 AS router, 'zero-shot CLIP' AS name FROM totals
    UNION
    SELECT totals.run, tasks.task, name FROM totals JOIN tasks USING (run) WHERE tasks.task <= after_task
), columns AS (
    SELECT name, min(iif(router < 0, -1, run * 4096 + router)) AS place FROM routers GROUP BY router < 0, name
)
SELECT totals.run AS run, totals.task AS row,
       coalesce(trained.name, 'zero-shot') AS after, tasks.name AS task, columns.name AS title,
       CASE WHEN routers.router IS NOT NULL THEN coalesce(share, 0.0) END AS value
FROM totals
JOIN tasks USING (run, task)
LEFT JOIN tasks AS trained ON trained.run = totals.run AND trained.task = totals.after_task
CROSS JOIN columns
LEFT JOIN routers ON routers.run = totals.run AND routers.name = columns.name AND (routers.router < 0) = (place < 0)
LEFT JOIN routed ON part = totals.run AND routed.task = totals.task AND routed.router = routers.router
WHERE :dataset IS NULL OR tasks.name = :dataset
ORDER BY totals.run, totals.task, place
