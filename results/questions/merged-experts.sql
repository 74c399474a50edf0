-- title: experts by how often they were merged into, and from; most merged first
-- empty: their merge.policy is none, or no merge came due
WITH roles AS (
    SELECT run, task, encoder, block, CASE role WHEN 0 THEN target WHEN 1 THEN t1 ELSE t2 END AS expert, role = 0 AS target
    FROM chosen
    CROSS JOIN expert_events USING (run)
    JOIN (SELECT 0 AS role UNION ALL SELECT 1 UNION ALL SELECT 2)
    WHERE event = 'merge'
)
SELECT run, policy, seed, encoder, block, expert, sum(target) AS merged_into, sum(NOT target) AS merged_from,
       count(DISTINCT roles.task) AS tasks, frozen.task AS frozen_after
FROM roles
JOIN chosen USING (run)
LEFT JOIN frozen_experts AS frozen USING (run, encoder, block, expert)
WHERE expert IS NOT NULL AND (:dataset IS NULL OR (run, roles.task) IN (SELECT run, task FROM tasks WHERE name = :dataset))
GROUP BY run, encoder, block, expert
ORDER BY merged_into DESC, merged_from DESC, run, encoder, block, expert
