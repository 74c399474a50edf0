-- section: 141
-- title: Balance loss over the iterations of each task
-- draw: line 3 noisy
-- name: balance
-- caption: Means over seeds of the balance losses, summed over blocks and without their weight, that were recorded; where there are
-- caption: more than 150 per task, neighbours are averaged.
-- x: iteration
-- y: balance loss
WITH observed AS (
    SELECT number, task, iteration, balance_loss AS value FROM drawn CROSS JOIN steps USING (run)
),
-- include: points
SELECT title AS panel, legend AS series, colour, iteration AS x, y
FROM board
JOIN configurations ON colour IS NOT NULL
JOIN points USING (number, task)
WHERE wanted
ORDER BY task, number, point
