-- section: 140 Loss Training loss
-- title: {title}
-- draw: line 3 noisy {fractions}
-- choice: Curves
-- name: {name}
-- caption: Means over seeds of the losses that were recorded; where there are more than 150 per task, neighbours are averaged.{more}
-- x: {x_title}
-- y: {y_title}
WITH observed AS (
    SELECT 'loss' AS what, number, task, iteration, loss AS value FROM drawn CROSS JOIN steps USING (run)
    UNION ALL
    SELECT 'balance loss', number, task, iteration, balance_loss FROM drawn CROSS JOIN steps USING (run)
), sized AS ( -- iterations that make a point, of which a line has 150 at most
    SELECT number, max(1, (max(iteration) + 149) / 150) AS size FROM observed GROUP BY number
), points AS MATERIALIZED (
    SELECT what, number, task, (iteration - 1) / size AS point, avg(iteration) AS iteration, avg(value) AS y
    FROM observed
    JOIN sized USING (number)
    WHERE value IS NOT NULL
    GROUP BY what, number, task, point
), pace AS ( -- seconds of an iteration
    SELECT number, task, avg(seconds) AS pace
    FROM (SELECT number, task, total(seconds) / sum(iterations) AS seconds
          FROM drawn
          CROSS JOIN timings USING (run)
          WHERE phase = 'train' AND iterations > 0
          GROUP BY number, run, task)
    GROUP BY number, task
), ways (choice, what, title, name, x_title, fractions, more) AS (
    VALUES ('loss over iterations', 'loss', 'Training loss over the iterations of each task', 'loss', 'iteration', NULL, NULL),
           ('loss over time', 'loss', 'Training loss over the time that each task was trained', 'loss-time', 'time, s', 'fractions',
            ' Time: iterations times the mean seconds of one.'),
           ('balance loss', 'balance loss', 'Balance loss over the iterations of each task', 'balance', 'iteration', NULL,
            ' Balance losses are summed over blocks, without their weight.')
)
SELECT choice, ways.title AS title, ways.name AS name, x_title, what AS y_title, fractions, more, board.title AS panel,
       label AS series, colour, iif(fractions IS NULL, iteration, iteration * pace) AS x, y
FROM ways
JOIN board
JOIN configurations ON colour IS NOT NULL
JOIN points USING (what, number, task)
LEFT JOIN pace USING (number, task)
WHERE wanted AND (fractions IS NULL OR pace IS NOT NULL)
ORDER BY choice = 'balance loss', choice, task, number, point
