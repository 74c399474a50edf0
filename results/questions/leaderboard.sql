-- title: configurations by their mean over seeds, best Last first
-- empty: none of them is finished with a whole accuracy matrix; mtil query matrix shows what there is
-- column: suite_hash hidden
-- column: name of-dataset
-- each main: -- column: {name}_sd 2
-- wide: title value
WITH
-- include: settings-asked
,
-- include: measured
, means AS (
    SELECT suite_hash, name, min(chosen.run) AS run, label AS row, max(suite) AS suite, max(setting) AS setting, max(method) AS method,
           max(policy) AS policy, max(selector) AS selector, max(selection) AS selection, max(task_order) AS "order",
           max(model) AS model, substr(suite_hash, 1, 8) AS configuration, count(*) AS runs
-- each main: , avg({name}) AS {name}, sd({name}) AS {name}_sd
-- each board: , avg({name}) AS {name}
    FROM chosen
    JOIN measured USING (run)
    JOIN labels ON labels.hash = suite_hash
    WHERE status = 'finished'
    GROUP BY suite_hash
)
SELECT suite_hash, row, name, shown.key AS title, settings.value AS value, suite, setting, method, policy, selector, selection,
       "order", model, configuration, runs
-- each main: , {name}, {name}_sd
-- each board: , {name}
FROM means
LEFT JOIN shown ON true
LEFT JOIN settings ON settings.run = means.run AND settings.key = shown.key
ORDER BY means.last DESC, suite_hash, place
-- note:
-- include: incomplete
