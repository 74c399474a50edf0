-- title: transfer, average, last and more of each run whose matrix is complete
SELECT run, suite, method, policy, seed, transfer, average, last, forgetting, backward_transfer, forward_transfer, gain,
       zero_shot
FROM chosen
JOIN metrics USING (run)
ORDER BY run
-- instead:
SELECT 'metrics-of-dataset' WHERE :dataset IS NOT NULL
-- note:
SELECT count(*) || ' finished run' || iif(count(*) = 1, ' (', 's (') || group_concat(DISTINCT method)
       || iif(count(*) = 1, ') is', ') are') || ' not shown: the accuracy matrix has no row after each task. '
       || 'mtil query matrix shows what there is'
FROM chosen
WHERE status = 'finished' AND (SELECT count(*)
                               FROM evaluations
                               WHERE evaluations.run = chosen.run AND after_task BETWEEN 0 AND tasks - 1)
                              < iif(setting = 'class_incremental', tasks * (tasks + 1) / 2, tasks * tasks)
HAVING count(*) > 0
