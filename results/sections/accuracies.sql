-- Sections 10 to 12 and 30 to 50: accuracies and metrics.
-- === leaderboard
-- section: 10 Leaderboard Leaderboard
-- draw: table 1 {links}
-- caption: Percent, means over finished seeds; bold: the best of a column and whatever an exact test does not tell from it, where it
-- caption: tells any apart. ±: half the width of the 95% interval of the mean to its left (Student), – where one seed has none. Gain:
-- caption: Last less zero-shot CLIP's accuracy.{tasks}{cut}
-- wide: key value
-- each main: -- column: "{title}" 1
-- each board: -- column: "{title}" 1
WITH seen AS MATERIALIZED (
    SELECT 1 AS part, metric_list.name AS metric, number, seed, CASE metric_list.name
-- each main: WHEN '{name}' THEN {name}
-- each board: WHEN '{name}' THEN {name}
           END AS value
    FROM members
    JOIN metric_list ON tags LIKE '%main%' OR tags LIKE '%board%'
    WHERE finished
),
-- include: standing
SELECT label AS configuration, asked.key AS key, differing.value AS value, configurations.finished AS seeds
-- each main: , mean({name}) AS "{title}", ('{name}', configurations.number) IN (SELECT metric, number FROM supported) AS "{title} marked", plus_minus(mean({name}), half_width({name}), {low}, {high}) AS "{title} ±"
-- each board: , mean({name}) AS "{title}", ('{name}', configurations.number) IN (SELECT metric, number FROM supported) AS "{title} marked"
       , 'links' AS links
       , (SELECT ' Means over all tasks, not ' || dataset || ' alone.' FROM page) AS tasks
       , (SELECT iif(count(*) > 200, ' The best 200 of ' || count(*) || ' by Last.', '') FROM configurations) AS cut
FROM configurations
LEFT JOIN members ON members.number = configurations.number AND members.finished
LEFT JOIN asked ON true
LEFT JOIN differing ON differing.number = configurations.number AND differing.key = asked.key
WHERE configurations.number <= 200
GROUP BY configurations.number, asked.place
ORDER BY configurations.number, asked.place
-- refuse:
SELECT 'No run is finished yet.' WHERE NOT EXISTS (SELECT 1 FROM members WHERE finished AND last IS NOT NULL)
-- === leaderboard-metrics
-- section: 11
-- draw: table wrapped
-- name: metrics
-- details: What the metrics are
-- caption: a(i, j): accuracy on task j after task i. A run's metric is the mean over its tasks. In class-incremental runs Last is the
-- caption: accuracy over all classes seen and Average its mean over the tasks. ±: always the half-width of the 95% interval of a mean
-- caption: over seeds; sd: standard deviation. results/METRICS.md in the sources has the formulas.
SELECT title AS metric, formula AS "of task j of T", source
FROM metric_list
WHERE EXISTS (SELECT 1 FROM members WHERE finished AND last IS NOT NULL)
ORDER BY place
-- === leaderboard-means
-- section: 12
-- title: Transfer, Average and Last
-- draw: interval 1 own_ranges
-- name: leaderboard
-- caption: Means over finished seeds with 95% intervals (Student); no interval where there is one seed. The axes of the panels differ.{tasks}
-- x: accuracy, %
WITH means AS (
    SELECT NULL AS number, NULL AS label, NULL AS colour, NULL AS place, NULL AS title, NULL AS y, NULL AS low, NULL AS high WHERE false
-- each main: UNION ALL SELECT number, label, configurations.colour, {place}, '{title}', mean({name}), max({low}, mean({name}) - half_width({name})), min({high}, mean({name}) + half_width({name})) FROM configurations JOIN members USING (number) WHERE configurations.colour IS NOT NULL AND members.finished GROUP BY number
)
SELECT title AS panel, label AS series, colour, y, low, high, (SELECT ' Means over all tasks, not ' || dataset || ' alone.' FROM page) AS tasks
FROM means
WHERE EXISTS (SELECT 1 FROM members WHERE finished AND last IS NOT NULL)
ORDER BY place, number
-- note:
SELECT count(*) || iif(count(*) = 1, ' configuration without a finished run is not drawn.',
                       ' configurations without a finished run are not drawn.')
FROM configurations
WHERE finished = 0
HAVING count(*) > 0 AND (SELECT max(finished) FROM configurations) > 0
UNION ALL
SELECT iif(count(colour) = 1, 'Drawn is the configuration', 'Drawn are the ' || count(colour) || ' configurations')
       || ' with the highest Last of ' || count(*) || '.'
FROM configurations
WHERE finished > 0 OR (SELECT max(finished) FROM configurations) = 0
HAVING count(colour) < count(*)
-- === tasks
-- section: 30 Tasks Metrics on each task
-- draw: table 1
-- choice: Metric
-- name: tasks-{metric}
-- caption: {choice}: {formula}. Percent, means over finished seeds.{cut}
-- wide: name value
-- range: {low} {high}
WITH measured AS ( -- task 4096: the mean over tasks
    SELECT * FROM task_metrics
    UNION ALL
    SELECT run, 4096
-- each: , {name}
    FROM members
), means AS MATERIALIZED (
    SELECT number, task, place, mean(CASE metric_list.name
-- each: WHEN '{name}' THEN measured.{name}
           END) AS value
    FROM members
    CROSS JOIN measured USING (run)
    CROSS JOIN metric_list
    WHERE finished AND number <= 60
    GROUP BY number, task, place
)
SELECT metric_list.title AS choice, metric_list.name AS metric, formula, iif(shaded, low, NULL) AS low, iif(shaded, high, NULL) AS high,
       iif((SELECT count(*) FROM configurations) > 60, ' The configurations with the highest Last.', '') AS cut,
       label AS configuration, coalesce(board.name, 'mean') AS name, value
FROM means
JOIN (SELECT *, low = 0 AND best <> 'lowest' AS shaded FROM metric_list) AS metric_list USING (place)
JOIN configurations USING (number)
LEFT JOIN board USING (task)
WHERE (SELECT count(*) FROM board) > 1 AND place IN (SELECT place FROM means WHERE task = 4096 AND value IS NOT NULL)
ORDER BY place, number, means.task
-- === matrix
-- section: 40 Matrix Accuracy matrix
-- title: {label}
-- draw: heat 1
-- choice: Configuration or seed
-- name: {name}
-- caption: Test accuracy in percent on each task (columns) after each task trained (rows), {of}.
-- framed: the task just trained
-- x: test on task
-- y: after training on
-- value: accuracy, %
-- range: 0 100
-- wide: column value
WITH sets AS ( -- of a configuration all its runs (turn -1), and some by themselves
    SELECT number, -1 AS turn, run FROM drawn
    UNION ALL
    SELECT number, turn, drawn.run FROM drawn JOIN configurations USING (number) WHERE used > 1 AND turn < 5
), measured AS ( -- task null: of the run
    SELECT * FROM task_metrics
    UNION ALL
    SELECT run, NULL
-- each: , {name}
    FROM members
), lines AS ( -- of the table; place: after this task, from 1000 on a metric; task null: the mean over tasks
    SELECT number, turn, after_task AS place, task, avg(accuracy) AS value
    FROM sets
    JOIN matrix USING (run)
    GROUP BY number, turn, after_task, task
    UNION ALL
    SELECT number, turn, after_task, NULL, avg(accuracy) FROM sets JOIN mean_accuracy USING (run) GROUP BY number, turn, after_task
    UNION ALL
    SELECT number, turn, 1000 + place, task, avg(CASE name
-- each main: WHEN '{name}' THEN {name}
           END) AS value
    FROM sets
    JOIN measured USING (run)
    JOIN metric_list ON tags LIKE '%main%'
    GROUP BY number, turn, place, task
    HAVING value IS NOT NULL
)
SELECT label || ', ' || CASE WHEN turn >= 0 THEN 'seed ' || seed ELSE iif(configurations.used > 1, 'mean of ', '') || seeds END AS choice,
       'matrix-' || number || iif(turn >= 0, '-seed-' || seed, '') AS name, label,
       CASE WHEN turn >= 0 THEN 'run ' || members.run ELSE iif(configurations.used > 1, 'mean over ', 'of ') || seeds END AS of,
       coalesce(board.name, metric_list.title, 'zero-shot') AS after, coalesce(tested.name, whole) AS "column", value,
       lines.place = lines.task AS framed, turn >= 0 OR lines.place >= 1000 OR lines.task IS NULL AS extra
FROM lines
JOIN configurations USING (number)
LEFT JOIN members USING (number, turn)
LEFT JOIN board ON board.task = lines.place
LEFT JOIN metric_list ON metric_list.place = lines.place - 1000
LEFT JOIN board AS tested ON tested.task = lines.task
CROSS JOIN (SELECT iif(max(setting) IN ('class_incremental', 'domain_incremental'), 'all images', 'mean') AS whole
            FROM configurations JOIN runs USING (run))
ORDER BY number, turn, lines.place, lines.task IS NULL, lines.task
-- === forgetting
-- section: 50 Forgetting Forgetting
-- title: Accuracy on each task, %, after 0 (zero-shot), 1, 2, … tasks trained
-- draw: line 1 points
-- caption: Lines: means over seeds. Bands: from the least to the greatest seed. Dotted: when the panel's own task has been trained.
-- x: tasks trained
-- y: accuracy, %
WITH cells AS (
    SELECT number, task, after_task, avg(100.0 * correct / images) AS y, min(100.0 * correct / images) AS low,
           max(100.0 * correct / images) AS high
    FROM drawn
    JOIN evaluations USING (run)
    GROUP BY number, task, after_task
), rows AS (
    SELECT -1 AS after_task UNION ALL SELECT task FROM board
)
SELECT title AS panel, board.task + 1 AS mark, label AS series, colour, rows.after_task + 1 AS x, y, low, high
FROM board
JOIN configurations ON colour IS NOT NULL
CROSS JOIN rows
LEFT JOIN cells USING (number, task, after_task)
WHERE wanted
ORDER BY board.task, number, x
