SELECT run, suite, method, policy, seed, name, transfer, average, last, forgetting, backward_transfer, forward_transfer,
       gain, zero_shot
FROM chosen
JOIN task_metrics USING (run)
JOIN tasks USING (run, task)
WHERE name = :dataset
ORDER BY run, task
-- note:
-- include: incomplete
