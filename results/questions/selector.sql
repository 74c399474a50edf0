-- title: selectors of each run, its own and those of mtil eval --selector, and what comes of them
WITH tried AS ( -- trial 0: the run's own
    SELECT run, 0 AS trial, selector, selection, tasks FROM chosen WHERE selector <> 'none'
    UNION ALL
    SELECT DISTINCT run, trial, trials.selector, trials.selection, tasks
    FROM chosen
    JOIN trials USING (run)
), answers AS (
    SELECT run, 0 AS trial, task, after_task, 100.0 * correct / images AS accuracy FROM evaluations WHERE after_task >= 0
    UNION ALL
    SELECT run, trial, task, after_task, 100.0 * correct / images FROM trials
), columns AS (
    SELECT run, trial, count(*) = tasks AS whole, avg(accuracy) FILTER (WHERE after_task < task) AS transfer,
           avg(accuracy) AS average, max(accuracy) FILTER (WHERE after_task = tasks - 1) AS last
    FROM tried
    JOIN answers USING (run, trial)
    GROUP BY run, trial, task
), means AS (
    SELECT run, trial, CASE WHEN min(whole) THEN avg(transfer) END AS transfer,
           CASE WHEN min(whole) THEN avg(average) END AS average, avg(last) AS last
    FROM columns
    GROUP BY run, trial
), choices AS (
    SELECT run, 0 AS trial, after_task, task, router, count FROM router_choices WHERE after_task >= 0
    UNION ALL
    SELECT run, trial, after_task, task, CAST(router.key AS INTEGER), router.value FROM trials JOIN json_each(routers) AS router
), shares AS ( -- of the images that took the router of their task (not trained yet: none), and that took none
    SELECT run, trial, after_task, task, max(after_task) OVER (PARTITION BY run, trial) AS latest,
           100.0 * sum(count) FILTER (WHERE router = iif(task <= after_task, task, -1)) / sum(count) AS own,
           100.0 * sum(count) FILTER (WHERE router < 0) / sum(count) AS none
    FROM tried
    JOIN choices USING (run, trial)
    GROUP BY run, trial, after_task, task
), routed AS (
    SELECT run, trial, avg(coalesce(own, 0)) FILTER (WHERE after_task = latest) AS own,
           avg(coalesce(none, 0)) FILTER (WHERE after_task = latest) AS none,
           avg(coalesce(none, 0)) FILTER (WHERE task > after_task) AS unseen
    FROM shares
    GROUP BY run, trial
)
-- Class-incremental runs, which have no other trial, have the Avg and Last of `metrics`.
SELECT tried.run AS run, trial, selector, selection, own AS right_router, none AS zero_shot, unseen AS unseen_zero_shot,
       means.transfer AS transfer, coalesce(seen.average, means.average) AS average,
       coalesce(seen.last, means.last) AS last
FROM tried
LEFT JOIN means USING (run, trial)
LEFT JOIN routed USING (run, trial)
LEFT JOIN metrics AS seen ON seen.run = tried.run AND trial = 0
                             AND (SELECT setting FROM runs WHERE runs.run = seen.run) = 'class_incremental'
ORDER BY run, trial
