-- section: 61
-- title: {choice}
-- draw: heat 1
-- name: frozen-{number}
-- choice: Configuration
-- caption: Frozen experts of each block after each task, of {experts}; mean over {seeds}, shaded from 0 to all.
-- x: task
-- y: block
-- value: frozen experts
-- range: 0 {experts}
-- wide: column value
WITH
-- include: frozen
SELECT label AS choice, number, seeds, max(experts) OVER (PARTITION BY number) AS experts, encoder || ' ' || block AS block,
       board.name AS column, avg(frozen) AS value
FROM counted
JOIN configurations USING (number)
JOIN board USING (task)
GROUP BY number, encoder, counted.block, task
ORDER BY number, encoder, counted.block, task
