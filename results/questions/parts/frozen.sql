-- Frozen experts of each block of the drawn runs after each task that their configuration's first run has trained; a task that
-- freezes nothing new keeps the count.
blocks AS MATERIALIZED (
    SELECT number, encoder, block, max(expert) + 1 AS experts, max(task) AS last
    FROM configurations
    JOIN expert_counts USING (run)
    WHERE colour IS NOT NULL
    GROUP BY number, encoder, block
), counts AS MATERIALIZED (
    SELECT run, task, encoder, block, count(*) AS frozen
    FROM (
        SELECT run, encoder, block, target, min(task) AS task
        FROM drawn
        JOIN expert_events USING (run)
        WHERE event = 'freeze'
        GROUP BY run, encoder, block, target
    )
    GROUP BY run, task, encoder, block
), counted AS MATERIALIZED (
    SELECT drawn.run AS run, number, blocks.encoder AS encoder, blocks.block AS block, board.task AS task,
           coalesce(sum(frozen) OVER (PARTITION BY drawn.run, blocks.encoder, blocks.block ORDER BY board.task), 0) AS frozen
    FROM drawn
    JOIN blocks USING (number)
    JOIN board ON board.task <= last
    LEFT JOIN counts ON counts.run = drawn.run AND counts.encoder = blocks.encoder AND counts.block = blocks.block
                        AND counts.task = board.task
)
