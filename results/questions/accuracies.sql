-- Accuracies and metrics of tasks, runs and configurations.
-- === matrix
-- title: accuracy on each task after each task, a row per trained task
-- empty: no task was tested yet
-- column: run,suite,method,policy,seed once
-- column: row hidden
-- column: * right 1
-- block: run
-- wide: title value
-- include: accuracies
SELECT run, after_task AS row, suite, method, policy, seed, after, title, value
FROM accuracies
JOIN chosen USING (run)
ORDER BY run, row, place
-- === mean-matrix
-- title: the accuracy matrix of each configuration, means over its finished seeds with 95% intervals
-- empty: none of them is finished
-- column: row,seeds once
-- column: hash,line hidden
-- column: * right 1
-- block: hash
-- wide: title value
-- include: accuracies
, means AS (
    SELECT suite_hash AS hash, count(*) AS seeds, after_task AS line, after, title, place, avg(value) AS mean, half_width(value) AS half
    FROM accuracies
    JOIN chosen USING (run)
    WHERE status = 'finished'
    GROUP BY suite_hash, after_task, title
)
SELECT hash, label AS row, seeds, line, after, iif(spread, title || ' ±', title) AS title,
       iif(spread, plus_minus(mean, half, 0, 100), mean) AS value
FROM means
JOIN labels USING (hash)
JOIN (SELECT 0 AS spread UNION ALL SELECT 1)
ORDER BY labels.run, line, place, spread
-- === seen-unseen
-- title: after each task, accuracy on the classes seen so far and on those to come, each among all classes, and their harmonic mean
-- empty: all classes compete in none of them; evaluation.label_space=all makes a run in which they do
-- column: run,row,suite,method,policy,seed once
SELECT chosen.run AS run, label AS row, suite, method, policy, seed, tasks.name AS after, seen, unseen, harmonic, accuracy
FROM chosen
JOIN seen_unseen USING (run)
JOIN tasks ON tasks.run = chosen.run AND task = after_task
JOIN labels ON labels.hash = chosen.suite_hash
ORDER BY chosen.run, after_task
-- === tasks
-- title: metrics of each task, its images, and how many of them were missing or unreadable
-- empty: no column of their accuracy matrix is whole; mtil query matrix shows what there is
SELECT run, suite, method, policy, seed, task, name
-- each: , {name}
       , training_images, test_images, missing_images, unreadable_images
FROM chosen
JOIN task_metrics USING (run)
JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task
-- note:
-- include: incomplete
-- === metrics
-- title: transfer, average, last and more of each run whose matrix is complete
-- empty: their accuracy matrix is not whole; mtil query matrix shows what there is
-- column: name of-dataset
-- include: measured
SELECT chosen.run AS run, label AS row, suite, method, policy, seed, name
-- each: , {name}
FROM chosen
JOIN measured USING (run)
JOIN labels ON labels.hash = chosen.suite_hash
ORDER BY run
-- note:
-- include: incomplete
-- === leaderboard
-- title: configurations by their mean over seeds, best Last first, those of other tasks by themselves; bold: what a test supports
-- empty: none of them is finished with a whole accuracy matrix; mtil query matrix shows what there is
-- column: suite_hash hidden
-- column: board optional
-- column: name of-dataset
-- each main: -- column: "{name} ±" 1
-- block: board
-- wide: title value
-- include: measured
, called AS ( -- what a configuration is called
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
), ranked AS MATERIALIZED (
    SELECT chosen.run AS run, suite_hash, seed, label, board, name
-- each main: , {name}
-- each board: , {name}
    FROM chosen
    JOIN measured USING (run)
    JOIN labels ON labels.hash = suite_hash
    WHERE status = 'finished'
), seen AS MATERIALIZED (
    SELECT board AS part, metric_list.name AS metric, suite_hash AS number, seed, CASE metric_list.name
-- each main: WHEN '{name}' THEN {name}
-- each board: WHEN '{name}' THEN {name}
           END AS value
    FROM ranked
    JOIN metric_list ON tags LIKE '%main%' OR tags LIKE '%board%'
),
-- include: standing
, means AS (
    SELECT board, suite_hash, ranked.name AS name, min(run) AS run, label AS row, count(*) AS runs
-- each main: , avg({name}) AS {name}, plus_minus(avg({name}), half_width({name}), {low}, {high}) AS {name}_half
-- each board: , avg({name}) AS {name}
    FROM ranked
    GROUP BY suite_hash
)
SELECT suite_hash, iif(max(board) OVER () > 1, board, NULL) AS board, row, means.name AS name, shown.key AS title, settings.value AS value,
       suite, chosen.setting AS setting, method, policy, selector, selection, task_order AS "order", model,
       substr(suite_hash, 1, 8) AS configuration, runs
-- each main: , {name}, (board, '{name}', suite_hash) IN (SELECT part, metric, number FROM supported) AS "{name} marked", {name}_half AS "{name} ±"
-- each board: , {name}, (board, '{name}', suite_hash) IN (SELECT part, metric, number FROM supported) AS "{name} marked"
FROM means
JOIN chosen USING (run, suite_hash)
LEFT JOIN shown ON true
LEFT JOIN settings ON settings.run = means.run AND settings.key = shown.key
ORDER BY means.board, means.last DESC, suite_hash, place
-- note:
SELECT group_concat(note, '. ')
FROM (SELECT 'board ' || board || ': ' || max(scope) AS note
      FROM labels
      WHERE board IS NOT NULL AND (SELECT max(board) FROM labels) > 1
      GROUP BY board
      UNION ALL
      SELECT * FROM (
-- include: incomplete
      ))
-- === best-setting
-- title: the configuration with the highest mean Last of each board, and the settings in which others there differ from it
-- empty: none of them is finished with a whole accuracy matrix
-- column: board optional
-- column: board,row,last,seeds once
-- column: hash hidden
-- column: "last ±" 1
-- block: hash
-- include: measured
, means AS (
    SELECT board, suite_hash AS hash, label, min(chosen.run) AS run, count(*) AS seeds, avg(last) AS last,
           plus_minus(avg(last), half_width(last), 0, 100) AS half
    FROM chosen
    JOIN measured USING (run)
    JOIN labels ON hash = suite_hash
    WHERE status = 'finished'
    GROUP BY suite_hash
), best AS (
    SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY board ORDER BY last DESC, hash) AS rank FROM means) WHERE rank = 1
), others AS (
    SELECT best.hash AS hash, keys.key AS key, own.value AS value, group_concat(DISTINCT coalesce(theirs.value, 'not set')) AS values_of_others
    FROM best
    JOIN means ON means.board IS best.board AND means.hash <> best.hash
    JOIN (SELECT DISTINCT key FROM chosen JOIN settings USING (run)) AS keys
    LEFT JOIN settings AS own ON own.run = best.run AND own.key = keys.key
    LEFT JOIN settings AS theirs ON theirs.run = means.run AND theirs.key = keys.key
    WHERE own.value IS NOT theirs.value AND NOT (is_incidental(keys.key, own.value) AND is_incidental(keys.key, theirs.value))
    GROUP BY best.hash, keys.key
)
SELECT hash, iif(count(board) OVER () > 0 AND (SELECT max(board) FROM means) > 1, board, NULL) AS board, label AS row, seeds, last, half AS "last ±",
       key AS setting, value, values_of_others AS others
FROM best
LEFT JOIN others USING (hash)
ORDER BY board, hash, key
-- === settings
-- title: settings in which runs differ and that matter, a column per run (--run 1,4); of one run, all of them
-- empty: they differ in no setting that matters; mtil query inputs has the files and images that they read
-- wide: title value
WITH told AS (
    SELECT run, key, value, is_incidental(key, value) AS incidental FROM chosen JOIN settings USING (run)
    UNION ALL
    SELECT run, 'seed', seed, 0 FROM chosen
    UNION ALL
    SELECT run, 'suite', suite, 0 FROM chosen
), shown AS (
    SELECT key
    FROM told
    GROUP BY key
    HAVING (SELECT count(*) FROM chosen) = 1
           OR NOT max(incidental) AND (min(value) <> max(value) OR count(*) < (SELECT count(*) FROM chosen))
)
SELECT shown.key AS setting, 'run ' || chosen.run AS title, value
FROM shown
CROSS JOIN chosen
LEFT JOIN told ON told.key = shown.key AND told.run = chosen.run
ORDER BY instr(shown.key, '.') > 0, shown.key, chosen.run
-- refuse:
SELECT count(*) || ' runs are too many to stand side by side; choose up to 50, as in mtil query settings --run 1,4'
FROM chosen
HAVING count(*) > 50
-- === setting-curve
-- title: Transfer, Average and Last over a setting of numbers: --by merge.every
-- empty: no finished run with metrics has a number there
-- column: series once
-- column: configuration hidden
-- column: name of-dataset
-- each main: -- column: "{name} ±" right 1
-- block: series
-- wide: key value

-- Configurations that differ in this setting alone are one series, which is named by the others in which any differ.
-- include: measured
, axis AS (
    SELECT key FROM asked ORDER BY place LIMIT 1
), points AS ( -- finished runs with a number there
    SELECT suite_hash, key, value, measured.*
    FROM axis
    JOIN settings USING (key)
    JOIN chosen USING (run)
    JOIN measured USING (run)
    WHERE status = 'finished' AND type IN ('integer', 'real')
), configurations AS (
    SELECT suite_hash, min(run) AS run FROM points GROUP BY suite_hash
), others AS (
    SELECT key
    FROM configurations
    JOIN settings USING (run)
    WHERE key NOT IN (SELECT key FROM axis)
    GROUP BY key
    HAVING (min(value) <> max(value) OR count(*) < (SELECT count(*) FROM configurations)) AND NOT max(is_incidental(key, value))
), placed AS (
    SELECT suite_hash, group_concat(title, ', ') AS series
    FROM (SELECT suite_hash, others.key || ' ' || value AS title
          FROM configurations
          CROSS JOIN others
          LEFT JOIN settings ON settings.run = configurations.run AND settings.key = others.key
          ORDER BY suite_hash, others.key)
    GROUP BY suite_hash
)
SELECT series, suite_hash AS configuration, name, key, value, count(*) AS runs
-- each main: , mean({name}) AS {name}, plus_minus(avg({name}), half_width({name}), {low}, {high}) AS "{name} ±"
FROM points
LEFT JOIN placed USING (suite_hash)
GROUP BY suite_hash
ORDER BY series, value, suite_hash
-- refuse:
SELECT 'which setting? Name one with --by, as in mtil query setting-curve --by merge.every' WHERE NOT EXISTS (SELECT 1 FROM asked)
-- === learning-curves
-- title: training loss and accuracy of each configuration by task and iteration, means over seeds
-- empty: no loss was recorded
-- column: configuration,suite,method,policy once
-- column: loss,lowest,highest,balance_loss 4
-- column: accuracy 1
-- block: configuration
SELECT substr(suite_hash, 1, 8) AS configuration, suite, method, policy, task, name, iteration, count(*) AS runs, mean(loss) AS loss,
       min(loss) AS lowest, max(loss) AS highest, mean(balance_loss) AS balance_loss, 100 * mean(accuracy) AS accuracy,
       max(learning_rate) AS learning_rate
FROM chosen
CROSS JOIN steps USING (run)
JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
GROUP BY suite_hash, task, iteration
ORDER BY min(chosen.run) OVER (PARTITION BY suite_hash), suite_hash, task, iteration
-- === outliers
-- title: runs whose Transfer, Average or Last lies too far from that of the other seeds of their configuration
-- empty: no seed stands out
-- column: value,others 1
-- column: p 4
-- column: name of-dataset

-- Grubbs' test: each run against the others of its configuration (Student's t of the deleted residual), p times the seeds. The others
-- vary at least as numbers do that are rounded to an image of any task, or two that happen to be equal would make any third stand out.
-- include: measured
, valued AS (
    SELECT run, suite_hash, measured.name AS name, title AS metric, CASE title
-- each main: WHEN '{title}' THEN {name}
           END AS value, (SELECT 100.0 / count(*) * sqrt(avg(1.0 / (test_images * test_images))) FROM tasks
                          WHERE tasks.run = chosen.run AND coalesce(:dataset, tasks.name) = tasks.name) AS step
    FROM chosen
    JOIN measured USING (run)
    JOIN metric_list ON tags LIKE '%main%'
    WHERE status = 'finished'
), spread AS (
    SELECT suite_hash, metric, count(value) AS seeds, mean(value) AS mean, sd(value) AS sd
    FROM valued
    GROUP BY suite_hash, metric
    HAVING count(value) > 2
), tested AS (
    SELECT run, name, metric, value, (seeds * mean - value) / (seeds - 1) AS others, seeds,
           min(1.0, seeds * t_p((value - mean) * sqrt((seeds - 2)
                    / max((seeds - 1.0) * (seeds - 1) / seeds * sd * sd - (value - mean) * (value - mean),
                          (seeds - 2) * step * step / 12)), seeds - 2)) AS p
    FROM valued
    JOIN spread USING (suite_hash, metric)
)
SELECT chosen.run AS run, label AS row, suite, method, policy, seed, name, metric, value, others, seeds, p
FROM tested
JOIN chosen USING (run)
JOIN labels ON labels.hash = chosen.suite_hash
WHERE p < 0.05
ORDER BY p, run, metric
-- note:
SELECT count(*) || iif(count(*) = 1, ' configuration has', ' configurations have') || ' fewer than three finished seeds, too few to tell'
FROM (SELECT suite_hash FROM chosen WHERE status = 'finished' GROUP BY suite_hash HAVING count(*) < 3)
HAVING count(*) > 0
