-- title: how often each expert was chosen, per task and block
SELECT run, task, name, encoder, block, expert, count, share, frozen
FROM chosen
JOIN expert_usage USING (run)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task, encoder, block, expert
