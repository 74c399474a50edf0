-- section: 130 Router Choice of the router
-- title: {label}
-- draw: heat 1
-- choice: Configuration
-- name: router-{number}
-- caption: Percent of each task's test images (rows) that went to each router (columns) after the last task, pooled over {seeds}.
-- framed: the task's own router
-- x: router chosen
-- y: images of
-- value: share, %
-- range: 0 100
-- wide: column value
WITH parts AS (
    SELECT run, number AS part FROM drawn
),
-- include: routed
, routers AS (
    SELECT -1 AS router, 'zero-shot' AS name
    UNION ALL
    SELECT task, name FROM board
)
SELECT label AS choice, label, seeds, number, board.name AS "images of", routers.name AS "column",
       iif(totals.part IS NOT NULL, coalesce(share, 0.0), NULL) AS value, routers.router = board.task AS framed
FROM configurations
JOIN board
JOIN routers
LEFT JOIN routed AS sent
          ON sent.part = number AND sent.task = board.task AND sent.router = routers.router
LEFT JOIN (SELECT DISTINCT part, task FROM routed) AS totals
          ON totals.part = number AND totals.task = board.task
WHERE number IN (SELECT part FROM routed)
ORDER BY number, board.task, routers.router
