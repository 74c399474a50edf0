-- title: merges, skips and freezes in their order
-- empty: nothing was merged, skipped or frozen
SELECT run, task, name, iteration, encoder, block, event, t1, t2, target, reason
FROM chosen
JOIN events USING (run)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task, iteration, encoder, block, position
