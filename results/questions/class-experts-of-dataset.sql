-- column: run,block once
-- column: task,sheet hidden
-- column: * right 1
-- block: sheet
-- wide: expert share
WITH used AS MATERIALIZED (
    SELECT class_usage.* FROM chosen JOIN class_usage USING (run) WHERE name = :dataset
), experts(expert) AS (
    SELECT 0 WHERE EXISTS (SELECT 1 FROM used)
    UNION ALL
    SELECT expert + 1 FROM experts WHERE expert < (SELECT max(expert) FROM used)
)
SELECT run, run || ' ' || block AS sheet, task, block, class, max(class_name) AS class_name,
       CAST(experts.expert AS TEXT) AS expert, coalesce(max(share) FILTER (WHERE used.expert = experts.expert), 0.0) AS share
FROM used
CROSS JOIN experts
GROUP BY run, task, block, class, experts.expert
ORDER BY run, block, task, class, experts.expert
