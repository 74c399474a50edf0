-- title: the same per task, with its images and how many were missing or unreadable
SELECT run, suite, method, policy, seed, task, name, transfer, average, last, forgetting, backward_transfer,
       forward_transfer, gain, zero_shot, training_images, test_images, missing_images, unreadable_images
FROM chosen
JOIN task_metrics USING (run)
JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task
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
