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
WITH
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
