-- section: 101
-- draw: table wrapped 1
-- name: events
-- details: Numbers per encoder and task
-- caption: Per run, means over seeds. A single event is told by mtil query events.
-- wide: title count
WITH
-- include: events
SELECT label AS configuration, encoder, task + 1 AS task, name AS dataset, counted.title AS title, count
FROM counted
JOIN configurations USING (number)
JOIN board USING (task)
ORDER BY counted.number, encoder, task, kind
