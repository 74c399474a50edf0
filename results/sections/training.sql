-- Sections 140 to 180: training, its cost, and settings.
-- === loss
-- section: 140 Loss Training loss
-- title: {title}
-- draw: line 3 noisy {fractions}
-- choice: Curves
-- name: {name}
-- caption: Means over seeds of the losses that were recorded; where there are more than 150 per task, neighbours are averaged.{more}
-- x: {x_title}
-- y: {y_title}
WITH observed AS (
    SELECT 'loss' AS what, number, task, iteration, loss AS value FROM drawn CROSS JOIN steps USING (run)
    UNION ALL
    SELECT 'balance loss', number, task, iteration, balance_loss FROM drawn CROSS JOIN steps USING (run)
    UNION ALL
    SELECT 'accuracy', number, task, iteration, 100 * accuracy FROM drawn CROSS JOIN steps USING (run)
), sized AS ( -- iterations that make a point; a line has 150 points at most
    SELECT number, max(1, (max(iteration) + 149) / 150) AS size FROM observed GROUP BY number
), points AS MATERIALIZED (
    SELECT what, number, task, (iteration - 1) / size AS point, avg(iteration) AS iteration, avg(value) AS y
    FROM observed
    JOIN sized USING (number)
    WHERE value IS NOT NULL
    GROUP BY what, number, task, point
), pace AS ( -- seconds of an iteration
    SELECT number, task, avg(seconds) AS pace
    FROM (SELECT number, task, total(seconds) / sum(iterations) AS seconds
          FROM drawn
          CROSS JOIN timings USING (run)
          WHERE phase = 'train' AND iterations > 0
          GROUP BY number, run, task)
    GROUP BY number, task
), ways (choice, what, title, name, x_title, fractions, more) AS (
    VALUES ('loss over iterations', 'loss', 'Training loss over the iterations of each task', 'loss', 'iteration', NULL, NULL),
           ('loss over time', 'loss', 'Training loss over the time that each task was trained', 'loss-time', 'time, s', 'fractions',
            ' Time: iterations times the mean seconds of one.'),
           ('training accuracy', 'accuracy', 'Accuracy on the training batches over the iterations of each task', 'accuracy',
            'iteration', NULL, ' Of images as they are augmented, before the step that they train; mixed images count by the larger part.'),
           ('balance loss', 'balance loss', 'Balance loss over the iterations of each task', 'balance', 'iteration', NULL,
            ' Balance losses are summed over blocks, without their weight.')
)
SELECT choice, ways.title AS title, ways.name AS name, x_title, iif(what = 'accuracy', 'accuracy, %', what) AS y_title, fractions, more, board.title AS panel,
       label AS series, colour, iif(fractions IS NULL, iteration, iteration * pace) AS x, y
FROM ways
JOIN board
JOIN configurations ON colour IS NOT NULL
JOIN points USING (what, number, task)
LEFT JOIN pace USING (number, task)
WHERE wanted AND (fractions IS NULL OR pace IS NOT NULL)
ORDER BY choice = 'balance loss', choice, task, number, point
-- === costs
-- section: 150 Time Time and memory
-- draw: table 1
-- caption: Per run, means over seeds; memory: of the process, the greatest of them.
-- caption: Runs side by side slow one another down.{cut}
-- column: "images per second","peak memory, MiB" 0
SELECT label AS configuration, phase, avg(seconds) AS "time, s", avg(1000 * seconds_per_iteration) AS "per iteration, ms",
       avg(images_per_second) AS "images per second", nullif(max(peak_bytes), 0) / 1048576.0 AS "peak memory, MiB",
       iif((SELECT count(*) FROM configurations) > 60, ' The configurations with the highest Last.', '') AS cut
FROM members
JOIN configurations USING (number)
JOIN throughput USING (run)
WHERE number <= 60 AND members.used
GROUP BY number, phase
ORDER BY number, phase
-- === cost
-- section: 151
-- draw: table 2
-- caption: ×: multiples of {base}, means over the seeds that both have with 95% intervals (Student); times and memory on the same
-- caption: machine alone. Operations are counted from dimensions, of a training step and of a test image.{cut}
-- wide: title value
-- column: parameters 0
-- column: "s/step","s/step ±","GFLOP/step","GFLOP/image","parameters×","GFLOP/step×","GFLOP/image×" 3
-- column: "images/s","images/s ±","peak_MiB","peak_MiB ±" 1
WITH own AS (
    SELECT number, configurations.label AS label, row FROM configurations JOIN names USING (run) WHERE number <= 60 AND finished > 0
), based AS (
    SELECT number, label FROM own ORDER BY row IS NOT 'Dense', (SELECT min(run) FROM members WHERE members.number = own.number) LIMIT 1
), priced AS MATERIALIZED (
    SELECT run, seed, number, 0 AS board, number = (SELECT number FROM based) AS based
    FROM members
    WHERE finished AND number IN (SELECT number FROM own)
),
-- include: costs
SELECT machine, own.label AS configuration, runs, pairs, title, value, (SELECT label FROM based) AS base,
       iif((SELECT count(*) FROM configurations) > 60, ' The configurations with the highest Last.', '') AS cut
FROM entries
JOIN own USING (number)
WHERE title IN (SELECT title FROM entries WHERE value IS NOT NULL)
ORDER BY machine IS NULL, machine, number, place, side
-- === hyperparameters
-- section: 160 Settings Settings
-- draw: table wrapped anchors
-- caption: Settings in which configurations differ, best Last first; –: the setting does not apply.{cut}
-- wide: key value
-- column: Last 1
WITH compared AS (
    SELECT number, label FROM configurations WHERE number <= 200
), differences AS ( -- settings in which the first and another one differ
    SELECT keys.key AS key, other.number AS number
    FROM (SELECT DISTINCT key FROM differing JOIN compared USING (number)) AS keys
    JOIN compared AS other
    LEFT JOIN differing AS a ON a.number = 1 AND a.key = keys.key
    LEFT JOIN differing AS b ON b.number = other.number AND b.key = keys.key
    WHERE a.value IS NOT b.value AND NOT (coalesce(a.incidental, 1) AND coalesce(b.incidental, 1))
), told AS ( -- in the order in which the configurations bring them, and whether all values are numbers
    SELECT key, row_number() OVER (ORDER BY min(number), key) AS place,
           (SELECT min(CASE WHEN json_valid(value) THEN json_type(value) IN ('integer', 'real') ELSE 0 END)
            FROM differing
            WHERE differing.key = differences.key) AS numeric
    FROM differences
    GROUP BY key
), means AS (
    SELECT number, mean(last) AS mean FROM members WHERE finished GROUP BY number
)
SELECT label AS configuration, mean AS Last, told.key AS key, iif(numeric, CAST(value AS REAL), value) AS value,
       iif((SELECT count(*) FROM told) > 30, ' More settings differ than these 30.', '') AS cut
FROM compared
LEFT JOIN means USING (number)
LEFT JOIN told ON place <= 30
LEFT JOIN differing ON differing.number = compared.number AND differing.key = told.key
ORDER BY compared.number, place
-- === hyperparameters-shared
-- section: 161
-- draw: table wrapped
-- name: settings
-- details: {count} settings {whose}
-- caption: The whole suite of a run, as resolved: mtil query settings --run NUMBER.
SELECT key, min(value) AS value, count(*) OVER () AS count,
       iif((SELECT count(*) FROM configurations) = 1, 'of the configuration', 'that all configurations share') AS whose
FROM differing
GROUP BY key
HAVING count(*) = min(2000, (SELECT count(*) FROM configurations)) AND min(value) = max(value)
ORDER BY key
-- === setting-curve
-- section: 165 Curves Last over settings of numbers
-- title: Last over {key}
-- draw: line points 1
-- choice: Setting
-- name: setting-curve-{number}
-- caption: Means over finished seeds, with 95% intervals (Student). Configurations that differ in this setting alone are one line.
-- x: {key}
-- y: Last, %
WITH keys AS MATERIALIZED ( -- settings with several values, all of them numbers
    SELECT key, row_number() OVER (ORDER BY key) AS number
    FROM differing
    WHERE key NOT LIKE 'run.%'
    GROUP BY key
    HAVING NOT max(incidental) AND min(value) <> max(value)
           AND min(CASE WHEN json_valid(value) THEN json_type(value) IN ('integer', 'real') ELSE 0 END)
), others AS MATERIALIZED (
    SELECT key FROM differing GROUP BY key
    HAVING NOT max(incidental) AND (min(value) <> max(value) OR count(*) < (SELECT count(*) FROM configurations))
), placed AS (
    SELECT keys.key AS key, keys.number AS place, value.number AS number, CAST(value.value AS REAL) AS x,
           (SELECT coalesce(group_concat(differing.value, ' · '), 'all')
            FROM others
            LEFT JOIN differing ON differing.key = others.key AND differing.number = value.number
            WHERE others.key <> keys.key) AS series
    FROM keys
    JOIN differing AS value USING (key)
)
SELECT key AS choice, key, place AS number, '' AS panel, series, x, mean(last) AS y, max(0, mean(last) - half_width(last)) AS low,
       min(100, mean(last) + half_width(last)) AS high
FROM (SELECT *, min(x) OVER line < max(x) OVER line AS several FROM placed WINDOW line AS (PARTITION BY key, series))
JOIN members USING (number)
WHERE several AND finished AND last IS NOT NULL
GROUP BY place, series, x
ORDER BY place, series, x
-- === runs
-- section: 180 Runs Runs
-- draw: table wrapped {links}
-- details: {runs}
-- caption: Accuracies in percent, times in UTC. A configuration leads to its settings.{cut}
-- each main: -- column: "{title}" 1
WITH counted AS (
    SELECT count(*) AS all_runs FROM members
)
SELECT members.run AS run, label AS configuration, members.seed AS seed
-- each main: , {name} AS "{title}"
       , members.status AS status, started, runs.finished AS ended, message,
       (SELECT group_concat(value, ': ')
        FROM (SELECT value FROM settings WHERE settings.run = members.run AND key IN ('run.name', 'run.note') ORDER BY key)) AS note,
       iif((SELECT count(*) FROM configurations) <= 200, 'links', '') AS links, all_runs || iif(all_runs = 1, ' run', ' runs') AS runs,
       iif(all_runs > 500, ' The first 500 of ' || all_runs || '.', '') AS cut
FROM members
JOIN configurations USING (number)
JOIN runs ON runs.run = members.run
CROSS JOIN counted
ORDER BY number, turn
LIMIT 500
