-- title: how often each expert was chosen, per task and block
-- empty: they have no experts that a router chooses, or trained no task
SELECT run, task, name, encoder, block, expert, count, share, frozen
FROM chosen
JOIN expert_usage USING (run)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task, encoder, block, expert
