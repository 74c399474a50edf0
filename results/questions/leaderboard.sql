-- title: configurations by their mean over seeds, best Last first
-- empty: none of them is finished with a whole accuracy matrix; mtil query matrix shows what there is
-- column: suite_hash hidden
-- column: name of-dataset
-- column: transfer_sd,average_sd,last_sd 2
-- wide: title value
WITH
-- include: settings-asked
,
-- include: measured
, means AS (
    SELECT suite_hash, name, min(chosen.run) AS run, row, max(suite) AS suite, max(setting) AS setting, max(method) AS method,
           max(policy) AS policy, max(selector) AS selector, max(selection) AS selection, max(task_order) AS "order",
           max(model) AS model, substr(suite_hash, 1, 8) AS configuration, count(*) AS runs,
           avg(transfer) AS transfer, sd(transfer) AS transfer_sd, avg(average) AS average, sd(average) AS average_sd,
           avg(last) AS last, sd(last) AS last_sd, avg(forgetting) AS forgetting, avg(gain) AS gain
    FROM chosen
    JOIN measured USING (run)
    JOIN names USING (run)
    WHERE status = 'finished'
    GROUP BY suite_hash
)
SELECT suite_hash, row, name, shown.key AS title, settings.value AS value, suite, setting, method, policy, selector, selection,
       "order", model, configuration, runs, transfer, transfer_sd, average, average_sd, last, last_sd, forgetting, gain
FROM means
LEFT JOIN shown ON true
LEFT JOIN settings ON settings.run = means.run AND settings.key = shown.key
ORDER BY means.last DESC, suite_hash, place
-- note:
-- include: incomplete
