-- title: configurations by their mean over seeds, best Last first
-- column: suite_hash hidden
-- column: transfer_sd 2
-- column: average_sd 2
-- column: last_sd 2
-- wide: title value
WITH called AS ( -- what a configuration is called
    SELECT min(run) AS run, json_array(suite, setting, method, policy, selector, selection, task_order, model) AS name
    FROM chosen
    WHERE status = 'finished'
    GROUP BY suite_hash
), twins AS (
    SELECT name, count(*) AS configurations FROM called GROUP BY name HAVING count(*) > 1
), told AS ( -- keys in which configurations that are called the same differ, a row's name first, for it says most
    SELECT key, max(value) AS value
    FROM (
        SELECT key, max(value) AS value
        FROM twins
        JOIN called USING (name)
        JOIN settings USING (run)
        GROUP BY name, key
        HAVING count(DISTINCT value) > 1 OR count(*) < configurations
    )
    GROUP BY key
), shown AS ( -- where only contents differ, the paths lead to them
    SELECT place, key FROM asked
    UNION ALL
    SELECT * FROM (
        SELECT row_number() OVER (ORDER BY key <> 'run.row', key), key
        FROM told
        WHERE NOT EXISTS (SELECT 1 FROM asked)
              AND (key = 'run.row' OR key LIKE 'model.%' OR key = 'data.root' OR NOT is_incidental(key, value))
        ORDER BY 1
        LIMIT 4
    )
), means AS (
    SELECT suite_hash, min(run) AS run, max(suite) AS suite, max(setting) AS setting, max(method) AS method,
           max(policy) AS policy, max(selector) AS selector, max(selection) AS selection, max(task_order) AS "order",
           max(model) AS model, substr(suite_hash, 1, 8) AS configuration, count(*) AS runs,
           avg(transfer) AS transfer, sd(transfer) AS transfer_sd, avg(average) AS average, sd(average) AS average_sd,
           avg(last) AS last, sd(last) AS last_sd, avg(forgetting) AS forgetting, avg(gain) AS gain
    FROM chosen
    JOIN metrics USING (run)
    WHERE status = 'finished'
    GROUP BY suite_hash
)
SELECT suite_hash, shown.key AS title, settings.value AS value, suite, setting, method, policy, selector, selection,
       "order", model, configuration, runs, transfer, transfer_sd, average, average_sd, last, last_sd, forgetting, gain
FROM means
LEFT JOIN shown ON true
LEFT JOIN settings ON settings.run = means.run AND settings.key = shown.key
ORDER BY means.last DESC, suite_hash, place
-- instead:
SELECT 'leaderboard-of-dataset' WHERE :dataset IS NOT NULL
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
