-- title: where the experts lie that were frozen by the last task (with a dataset: by that one), block by block
-- empty: they have no experts that a router chooses, or trained no task
WITH latest AS (
    SELECT run, max(task) AS task
    FROM chosen
    JOIN expert_counts USING (run)
    JOIN tasks USING (run, task)
    WHERE :dataset IS NULL OR name = :dataset
    GROUP BY run
), blocks AS (
    SELECT run, task, encoder, block, ntile(3) OVER (PARTITION BY run, encoder ORDER BY block) AS third
    FROM latest
    JOIN expert_counts USING (run, task)
    GROUP BY run, encoder, block
), found AS (
    SELECT run, encoder, block, count(*) AS frozen, count(*) FILTER (WHERE frozen_experts.task = latest.task) AS added
    FROM latest
    JOIN frozen_experts USING (run)
    WHERE frozen_experts.task <= latest.task
    GROUP BY run, encoder, block
)
SELECT run, name AS after, encoder, CASE third WHEN 1 THEN 'first' WHEN 2 THEN 'middle' ELSE 'last' END AS part, block,
       coalesce(frozen, 0) AS frozen, coalesce(added, 0) AS added,
       avg(coalesce(frozen, 0)) OVER (PARTITION BY run, encoder, third) AS part_mean
FROM blocks
JOIN tasks USING (run, task)
LEFT JOIN found USING (run, encoder, block)
ORDER BY run, encoder, block
