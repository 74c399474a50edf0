-- Frozen experts of each block of the drawn runs after each task that their configuration's first run has trained; a task that
-- freezes nothing new keeps the count.
freezes AS MATERIALIZED (
    SELECT run, encoder, block, target, min(task) AS task
    FROM drawn
    JOIN expert_events USING (run)
    WHERE event = 'freeze'
    GROUP BY run, encoder, block, target
), blocks AS MATERIALIZED (
    SELECT number, encoder, block, max(expert) + 1 AS experts, max(task) AS last
    FROM configurations
    JOIN expert_counts USING (run)
    WHERE colour IS NOT NULL
    GROUP BY number, encoder, block
), counted AS MATERIALIZED (
    SELECT drawn.run AS run, number, blocks.encoder AS encoder, blocks.block AS block, experts, board.task AS task,
           sum(count(target)) OVER (PARTITION BY drawn.run, blocks.encoder, blocks.block ORDER BY board.task) AS frozen
    FROM drawn
    JOIN blocks USING (number)
    JOIN board ON board.task <= last
    LEFT JOIN freezes ON (freezes.run, freezes.encoder, freezes.block, freezes.task) =
                         (drawn.run, blocks.encoder, blocks.block, board.task)
    GROUP BY drawn.run, blocks.encoder, blocks.block, board.task
)
