-- Sections 120 to 130: what test images were taken for, and where routers sent them.
-- === class-accuracy
-- section: 120 Confusion Accuracy on each class, and what it is taken for
-- draw: table wrapped 1
-- name: class-accuracy
-- details: Accuracy on each of {classes} classes
-- caption: Percent of the test images of each class, {of}.
-- include: recognised
, examined AS (
    SELECT run, task FROM recognised JOIN tasks USING (run)
),
-- include: class-accuracy
SELECT of, count(*) OVER () AS classes, coalesce(task_classes.name, labels.class) AS class, tested.name AS task,
       coalesce(max(images), 0) AS images, max(share) FILTER (WHERE moment = 'zero_shot') AS "zero-shot",
       max(share) FILTER (WHERE moment = 'learned') AS "right after its task",
       max(share) FILTER (WHERE moment = 'last') AS "at the end"
FROM labels
JOIN tested USING (task)
JOIN recognised USING (run)
LEFT JOIN task_classes USING (run, task, class)
LEFT JOIN counted ON counted.task = labels.task AND truth = labels.class
GROUP BY labels.task, labels.class
ORDER BY labels.task, labels.class
-- note:
-- include: recognised
SELECT 'One run: ' || of || '.' FROM recognised
-- === class-confusion
-- section: 121
-- title: {choice}: what the images of each class were taken for, %
-- draw: heat {words}
-- name: class-confusion-{number}
-- choice: Task
-- caption: A row per class, a column per class that was predicted; empty: never. mtil query confusion --dataset has
-- caption: names and counts.
-- x: predicted class
-- y: class
-- value: share, %
-- range: 0 100
-- include: recognised
, examined AS (
    SELECT run FROM recognised
),
-- include: tested
, taken AS MATERIALIZED ( -- shares of all of a class's images; those that were taken for another task's class have no cell
    SELECT task, truth, class, 100.0 * count / sum(count) OVER (PARTITION BY task, truth) AS share
    FROM (
        SELECT tested.task AS task, truth, CAST(predicted - iif(joint, first, 0) AS INTEGER) AS class, count(*) AS count
        FROM tested
        JOIN images(tested.run, tested.task, tested.after_task)
        WHERE truth IS NOT NULL AND predicted IS NOT NULL
        GROUP BY tested.task, truth, class
    )
), cells AS ( -- the empty ones of each class put rows and columns in their order
    SELECT task, class AS truth, class, NULL AS share FROM tested JOIN task_classes USING (run, task)
    UNION ALL
    SELECT task, truth, class, share FROM taken
)
SELECT board.name AS choice, board.task + 1 AS number, iif(classes <= 20, 'printed', '') AS words, '' AS panel,
       coalesce(own.name, truth) AS row, coalesce(guess.name, cells.class) AS column, share AS value
FROM cells
JOIN tested USING (task)
JOIN board USING (task)
LEFT JOIN task_classes AS own ON classes <= 20 AND (own.run, own.task, own.class) = (tested.run, board.task, truth)
LEFT JOIN task_classes AS guess ON classes <= 20 AND (guess.run, guess.task, guess.class) = (tested.run, board.task, cells.class)
WHERE wanted AND classes BETWEEN 2 AND 100 AND cells.class BETWEEN 0 AND classes - 1 AND tested.task IN (SELECT task FROM taken)
ORDER BY board.task, share IS NOT NULL, truth, cells.class
-- === router
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
