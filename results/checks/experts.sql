-- title: the choices of a task's training are those of its steps
WITH blocks AS MATERIALIZED (
    SELECT run, task, encoder, block, count(*) AS experts, max(expert) AS highest, sum(count) AS choices
    FROM expert_counts
    GROUP BY run, task, encoder, block
), compared AS (
    SELECT *, max(experts) OVER (PARTITION BY run, encoder) AS most FROM blocks
)
SELECT 'experts' AS what, run, 'task ' || task || ', ' || encoder || ' block ' || block AS "where",
       max(most, coalesce("adapter.experts", 0)) || ' experts' AS expected, experts || ' experts' AS found
FROM compared JOIN facts USING (run)
WHERE experts <> max(most, coalesce("adapter.experts", 0)) OR highest <> experts - 1
UNION ALL
SELECT 'experts', run, 'task ' || task || ', ' || encoder || ' block ' || block,
       'a choice or up to ' || "adapter.top_k" || ' of ' || iif(encoder = 'image', images, planned * classes) || ' samples',
       choices || ' choices'
FROM compared JOIN facts USING (run) JOIN plan USING (run, task) -- a gate that underflows to 0 is no choice
WHERE last = planned AND "training.on_nan" = 'stop' AND "adapter.routing" = 'per_sample' AND "training.loss" = 'cross_entropy'
      AND "run.gpus" = 1 AND rate IS NOT NULL
      AND (choices > iif(encoder = 'image', images, planned * classes) * "adapter.top_k"
           OR (choices < iif(encoder = 'image', images, planned * classes) AND "adapter.capacity" = 0))
UNION ALL -- a single training on all tasks is recorded under the last task
SELECT 'experts', run, 'rows', 'counts of ' || trained || ' tasks', count(DISTINCT expert_counts.task) || ' tasks'
FROM (SELECT run, count(last) AS trained FROM plan GROUP BY run)
JOIN expert_counts USING (run)
JOIN runs USING (run)
WHERE status = 'finished'
GROUP BY run
HAVING count(DISTINCT expert_counts.task) <> trained
UNION ALL
SELECT 'experts', run, 'rows', 'counts', 'none'
FROM facts JOIN runs USING (run)
WHERE status = 'finished' AND trained AND "adapter.experts" IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM expert_counts WHERE expert_counts.run = facts.run)
