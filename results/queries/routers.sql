-- The router confusion of each run, after the last task with choices of a selector: true task × chosen router, in
-- percent of the task's test images. Follows the CTE `chosen`; ?11: a true task or null. Columns: as query/wide.c
-- expects.
, routed AS (
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
SELECT totals.run AS block, (SELECT count(*) FROM columns) AS width, totals.run AS run,
       coalesce(trained.name, 'zero-shot') AS after, tasks.name AS task, columns.name AS title,
       CASE WHEN routers.router IS NOT NULL THEN 100.0 * coalesce(sent.count, 0) / images END AS value
FROM totals
JOIN tasks USING (run, task)
LEFT JOIN tasks AS trained ON trained.run = totals.run AND trained.task = totals.after_task
CROSS JOIN columns
LEFT JOIN routers ON routers.run = totals.run AND routers.name = columns.name AND (routers.router < 0) = (place < 0)
LEFT JOIN router_choices AS sent ON sent.run = totals.run AND sent.after_task = totals.after_task
                                    AND sent.task = totals.task AND sent.router = routers.router
WHERE ?11 IS NULL OR tasks.name = ?11
ORDER BY totals.run, totals.task, place
