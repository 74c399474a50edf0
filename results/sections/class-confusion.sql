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
        SELECT tested.task AS task, truth, predicted - iif(joint, first, 0) AS class, count(*) AS count
        FROM tested
        JOIN images(tested.run, tested.task, tested.after_task)
        WHERE truth IS NOT NULL AND predicted IS NOT NULL
        GROUP BY tested.task, truth, class
    )
), sizes AS ( -- as many classes as a figure shows; few have names and numbers
    SELECT taken.task AS task, run, 1 + max(max(truth), max(iif(class BETWEEN 0 AND classes - 1, class, 0))) AS size
    FROM taken
    JOIN placed USING (task)
    GROUP BY taken.task
), numbers(number) AS (
    SELECT 0
    UNION ALL
    SELECT number + 1 FROM numbers WHERE number < 99
), named AS MATERIALIZED (
    SELECT sizes.task AS task, size, number, coalesce(iif(size <= 20, task_classes.name, NULL), number) AS name
    FROM sizes
    JOIN numbers ON number < size
    LEFT JOIN task_classes ON task_classes.run = sizes.run AND task_classes.task = sizes.task AND class = number
    WHERE size BETWEEN 2 AND 100
)
SELECT board.name AS choice, board.task + 1 AS number, iif(rows.size <= 20, 'printed', '') AS words, '' AS panel, rows.name AS row,
       columns.name AS column, share AS value
FROM named AS rows
JOIN named AS columns USING (task)
JOIN board USING (task)
LEFT JOIN taken ON taken.task = rows.task AND truth = rows.number AND taken.class = columns.number
WHERE wanted
ORDER BY board.task, rows.number, columns.number
