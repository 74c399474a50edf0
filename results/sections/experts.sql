-- section: 70 Experts Use of experts
-- title: {choice}
-- draw: heat 1
-- name: experts-{number}
-- choice: Configuration
-- caption: Effective number of experts of each block in each task, of {experts}: exp of the entropy of how often each was chosen;
-- caption: mean over {seeds}.
-- x: task
-- y: block
-- value: effective experts
-- range: 1 {experts}
-- wide: column value
WITH blocks AS MATERIALIZED (
    SELECT number, encoder, block, max(expert) + 1 AS experts
    FROM configurations
    JOIN expert_counts USING (run)
    WHERE colour IS NOT NULL
    GROUP BY number, encoder, block
), effective AS MATERIALIZED ( -- per run; entropy in bits
    SELECT number, encoder, block, task, pow(2.0, entropy(count)) AS experts
    FROM drawn
    JOIN expert_counts USING (run)
    GROUP BY run, encoder, block, task
    HAVING sum(count) > 0
)
SELECT legend AS choice, configurations.number AS number, seeds,
       max(blocks.experts) OVER (PARTITION BY configurations.number) AS experts,
       blocks.encoder || ' ' || blocks.block AS block, board.name AS column, avg(effective.experts) AS value
FROM configurations
JOIN blocks USING (number)
JOIN board
LEFT JOIN effective ON effective.number = configurations.number AND effective.encoder = blocks.encoder
                       AND effective.block = blocks.block AND effective.task = board.task
GROUP BY configurations.number, blocks.encoder, blocks.block, board.task
ORDER BY configurations.number, blocks.encoder, blocks.block, board.task
-- note:
-- include: left-out
