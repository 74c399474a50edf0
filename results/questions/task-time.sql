-- title: seconds that each task took, by phase
-- empty: no phase has ended yet
-- column: run,suite,method,policy,seed once
-- column: train,selector,features,evaluate,total 1
-- block: run
SELECT run, suite, method, policy, seed, timings.task AS task, coalesce(name, 'zero-shot') AS name,
       sum(seconds) FILTER (WHERE phase = 'train') AS train, sum(seconds) FILTER (WHERE phase = 'selector') AS selector,
       sum(seconds) FILTER (WHERE phase = 'features') AS features, sum(seconds) FILTER (WHERE phase = 'evaluate') AS evaluate,
       sum(seconds) AS total
FROM chosen
JOIN timings USING (run)
LEFT JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
GROUP BY run, timings.task
ORDER BY run, timings.task
