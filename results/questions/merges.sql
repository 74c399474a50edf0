-- title: what became of each merge: use of the merged expert, loss, distance; with --by, a row per setting
-- empty: nothing is known of merges in them: their merge.policy is none, none came due, or merge.analysis was off; mtil
-- empty: query events lists what was merged, skipped and frozen
SELECT run, task, name, iteration, encoder, block, target, t1, t2, iterations, use, overwritten, next_use, loss_before,
       loss_after, distance
FROM chosen
JOIN merge_use USING (run)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task, iteration, encoder, block, position
-- instead:
SELECT 'merges-by-setting' WHERE EXISTS (SELECT 1 FROM asked)
