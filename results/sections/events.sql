-- section: 100 Merges Merges and freezes
-- title: What happened to the experts of each encoder in each task
-- draw: line points 1
-- caption: All blocks of an encoder together, means over seeds. A merge is skipped when no expert is free, or the least used
-- caption: is one of the two most used.
-- x: task
-- y: events per run
-- range: 0
WITH kinds(kind, event, title) AS (
    VALUES (0, 'merge', 'merges'), (1, 'skip', 'skipped merges'), (2, 'freeze', 'experts frozen')
), happened AS MATERIALIZED (
    SELECT number, encoder, task, event, count(*) AS count
    FROM drawn
    JOIN expert_events USING (run)
    GROUP BY number, encoder, task, event
)
SELECT kinds.title || ', ' || encoders.encoder AS panel, label AS series, colour, board.task + 1 AS x,
       1.0 * coalesce(count, 0) / used AS y
FROM configurations
JOIN kinds
JOIN (SELECT DISTINCT encoder FROM happened) AS encoders
JOIN board
LEFT JOIN happened USING (number, encoder, task, event)
WHERE number IN (SELECT number FROM happened)
ORDER BY encoders.encoder, kind, number, board.task
