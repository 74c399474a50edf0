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
SELECT legend AS choice, configurations.number AS number, seeds,
       max(experts) OVER (PARTITION BY configurations.number) AS experts, blocks.encoder || ' ' || blocks.block AS block,
       board.name AS column, avg(frozen) AS value
FROM configurations
JOIN blocks USING (number)
JOIN board
LEFT JOIN counted ON counted.number = configurations.number AND counted.encoder = blocks.encoder
                     AND counted.block = blocks.block AND counted.task = board.task
GROUP BY configurations.number, blocks.encoder, blocks.block, board.task
ORDER BY configurations.number, blocks.encoder, blocks.block, board.task
