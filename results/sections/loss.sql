-- section: 140 Loss Training loss
-- title: Training loss over the {over}
-- draw: line 3 noisy {fractions}
-- choice: Over
-- name: {name}
-- caption: Means over seeds of the losses that were recorded; where there are more than 150 per task, neighbours are averaged.{time}
-- x: {x_title}
-- y: loss
WITH observed AS (
    SELECT number, task, iteration, loss AS value FROM drawn CROSS JOIN steps USING (run)
),
-- include: points
, pace AS ( -- seconds of an iteration
    SELECT number, task, avg(seconds) AS pace
    FROM (SELECT number, task, total(seconds) / sum(iterations) AS seconds
          FROM drawn
          CROSS JOIN timings USING (run)
          WHERE phase = 'train' AND iterations > 0
          GROUP BY number, run, task)
    GROUP BY number, task
), ways (choice, over, name, x_title, fractions, time) AS (
    VALUES ('iterations', 'iterations of each task', 'loss', 'iteration', NULL, NULL),
           ('time', 'time that each task was trained', 'loss-time', 'time, s', 'fractions',
            ' Time: iterations times the mean seconds of one.')
)
SELECT choice, over, ways.name AS name, x_title, fractions, time, title AS panel, legend AS series, colour,
       iif(time IS NULL, iteration, iteration * pace) AS x, y
FROM ways
JOIN board
JOIN configurations ON colour IS NOT NULL
JOIN points USING (number, task)
LEFT JOIN pace USING (number, task)
WHERE wanted AND (time IS NULL OR pace IS NOT NULL)
ORDER BY choice, task, number, point
-- note:
-- include: left-out
