SELECT 'nothing is known of merges in these runs: their merge.policy is none, none came due, or merge.analysis was off; '
       || 'mtil query events lists what was merged, skipped and frozen'
WHERE EXISTS (SELECT 1 FROM chosen) AND NOT EXISTS (SELECT 1 FROM chosen JOIN merge_effects USING (run))
