-- section: 100 Merges Merges and freezes
-- title: What happened to the experts in each task
-- draw: line points 1
-- caption: All blocks of both encoders together, means over seeds. A merge is skipped when no expert is free, or the least used
-- caption: is one of the two most used.
-- x: task
-- y: events per run
-- range: 0
WITH
-- include: events
SELECT title AS panel, legend AS series, colour, task + 1 AS x, sum(count) AS y
FROM counted
JOIN configurations USING (number)
GROUP BY kind, number, task
ORDER BY kind, number, task
-- note:
-- include: left-out
