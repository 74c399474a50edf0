-- section: 71
-- title: {label}, seed {seed}
-- draw: heat
-- name: usage-{number}
-- caption: How often each expert was chosen. A panel per block, a row per expert, a column per task. Dots: frozen once the task
-- caption: has ended. Experts of different seeds have nothing to do with one another, so this is one run.
-- x: task
-- y: expert
-- value: share, %
-- range: 0
WITH detailed AS MATERIALIZED (
    SELECT drawn.* FROM drawn
    WHERE turn = 0 AND run IN (SELECT run FROM expert_counts)
    ORDER BY number
    LIMIT 2
), freezes AS MATERIALIZED (
    SELECT run, encoder, block, target AS expert, min(task) AS task
    FROM detailed
    JOIN expert_events USING (run)
    WHERE event = 'freeze'
    GROUP BY run, encoder, block, target
)
SELECT label, seed, number, encoder || ' ' || block AS panel, expert AS row, used.task + 1 AS column,
       100.0 * count / nullif(sum(count) OVER (PARTITION BY run, used.task, encoder, block), 0) AS value,
       freezes.task <= used.task AS framed
FROM detailed
JOIN expert_counts AS used USING (run)
LEFT JOIN freezes USING (run, encoder, block, expert)
ORDER BY number, encoder, block, expert, used.task
-- note:
SELECT 'Experts one by one are shown of the best 2 configurations.'
WHERE (SELECT count(DISTINCT number) FROM drawn JOIN expert_counts USING (run)) > 2
