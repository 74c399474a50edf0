SELECT count(*) || ' finished run' || iif(count(*) = 1, ' (', 's (') || group_concat(DISTINCT method)
       || iif(count(*) = 1, ') is', ') are') || ' not shown: the accuracy matrix has no row after each task. '
       || 'mtil query matrix shows what there is'
FROM chosen
WHERE status = 'finished' AND (SELECT count(*)
                               FROM evaluations
                               WHERE evaluations.run = chosen.run AND after_task BETWEEN 0 AND tasks - 1)
                              < iif(setting = 'class_incremental', tasks * (tasks + 1) / 2, tasks * tasks)
HAVING count(*) > 0
