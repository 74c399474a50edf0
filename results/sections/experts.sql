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
WITH effective AS ( -- per run; entropy in bits
    SELECT number, encoder, block, task, pow(2.0, entropy(count)) AS effective, max(expert) + 1 AS experts
    FROM drawn
    JOIN expert_counts USING (run)
    GROUP BY run, encoder, block, task
    HAVING sum(count) > 0
)
SELECT label AS choice, number, seeds, max(max(experts)) OVER (PARTITION BY number) AS experts, encoder || ' ' || block AS block,
       board.name AS column, avg(effective) AS value
FROM effective
JOIN configurations USING (number)
JOIN board USING (task)
GROUP BY number, encoder, block, task
ORDER BY number, encoder, effective.block, task
