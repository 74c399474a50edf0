-- section: 71
-- title: {legend}, seed {seed}
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
), blocks AS MATERIALIZED (
    SELECT run, encoder, block FROM detailed JOIN expert_counts USING (run) GROUP BY run, encoder, block
), experts AS MATERIALIZED (
    SELECT DISTINCT run, expert FROM detailed JOIN expert_counts USING (run)
), freezes AS MATERIALIZED (
    SELECT run, encoder, block, target AS expert, min(task) AS task
    FROM detailed
    JOIN expert_events USING (run)
    WHERE event = 'freeze'
    GROUP BY run, encoder, block, target
), used AS MATERIALIZED (
    SELECT run, expert_counts.task AS task, encoder, block, expert,
           100.0 * count / nullif(sum(count) OVER (PARTITION BY run, expert_counts.task, encoder, block), 0) AS share,
           coalesce(freezes.task <= expert_counts.task, 0) AS frozen
    FROM detailed
    JOIN expert_counts USING (run)
    LEFT JOIN freezes USING (run, encoder, block, expert)
)
SELECT legend, seed, number, blocks.encoder || ' ' || blocks.block AS panel, experts.expert AS row,
       board.task + 1 AS column, share AS value, coalesce(frozen, 0) AS framed
FROM detailed
JOIN blocks USING (run)
JOIN experts USING (run)
JOIN board
LEFT JOIN used ON used.run = detailed.run AND used.task = board.task AND used.encoder = blocks.encoder
                  AND used.block = blocks.block AND used.expert = experts.expert
ORDER BY number, blocks.encoder, blocks.block, experts.expert, board.task
-- note:
SELECT 'Experts one by one are shown of the best 2 configurations.'
WHERE (SELECT count(DISTINCT number) FROM drawn JOIN expert_counts USING (run)) > 2
