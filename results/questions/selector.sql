-- title: selectors of each run, its own and those of mtil eval --selector, and what comes of them
-- empty: they have no selector
WITH trials AS ( -- trial 0: the run's own
    SELECT run, 0 AS trial, selector, selection, tasks FROM chosen WHERE selector <> 'none'
    UNION ALL
    SELECT run, trial, selector_trials.selector, selector_trials.selection, tasks
    FROM chosen
    JOIN selector_trials USING (run)
), means AS (
    SELECT run, 0 AS trial, transfer, average, last FROM metrics
    UNION ALL
    SELECT run, trial, iif(min(whole), avg(transfer), NULL), iif(min(whole), avg(average), NULL), avg(last)
    FROM (
        SELECT run, trial, count(*) = tasks AS whole, avg(accuracy) FILTER (WHERE after_task < task) AS transfer,
               avg(accuracy) AS average, max(accuracy) FILTER (WHERE after_task = tasks - 1) AS last
        FROM trials
        JOIN (SELECT trial, task, after_task, 100.0 * correct / images AS accuracy FROM trial_evaluations) USING (trial)
        GROUP BY run, trial, task
    )
    GROUP BY run, trial
), choices AS (
    SELECT run, 0 AS trial, after_task, task, router, count FROM router_choices WHERE after_task >= 0
    UNION ALL
    SELECT run, trial, after_task, task, router, count FROM trial_choices
), shares AS ( -- of the images that took the router of their task (not trained yet: none), and that took none
    SELECT run, trial, after_task, task, max(after_task) OVER (PARTITION BY run, trial) AS latest,
           100.0 * sum(count) FILTER (WHERE router = iif(task <= after_task, task, -1)) / sum(count) AS own,
           100.0 * sum(count) FILTER (WHERE router < 0) / sum(count) AS none
    FROM trials
    JOIN choices USING (run, trial)
    GROUP BY run, trial, after_task, task
), routed AS (
    SELECT run, trial, avg(coalesce(own, 0)) FILTER (WHERE after_task = latest) AS own,
           avg(coalesce(none, 0)) FILTER (WHERE after_task = latest) AS none,
           avg(coalesce(none, 0)) FILTER (WHERE task > after_task) AS unseen
    FROM shares
    GROUP BY run, trial
)
SELECT run, trial, selector, selection, own AS right_router, none AS zero_shot, unseen AS unseen_zero_shot, transfer, average, last
FROM trials
LEFT JOIN means USING (run, trial)
LEFT JOIN routed USING (run, trial)
ORDER BY run, trial
