-- What several questions and sections of a page begin with: a line "-- include: NAME" stands for such a part;
-- one that begins with WITH begins the statement.
-- === accuracies
WITH cells AS MATERIALIZED (
    SELECT run, after_task, task, name, correct, images, 100.0 * correct / images AS accuracy
    FROM chosen
    JOIN evaluations USING (run)
    JOIN tasks USING (run, task)
    WHERE :dataset IS NULL OR name = :dataset
), lines AS ( -- a row in part has no mean
    SELECT run, after_task, setting IN ('class_incremental', 'domain_incremental') AS weighted, coalesce((SELECT name FROM tasks WHERE tasks.run = chosen.run AND task = after_task), 'zero-shot') AS after,
           CASE WHEN count(*) = iif(setting = 'class_incremental' AND after_task >= 0, after_task + 1, tasks)
                THEN iif(setting IN ('class_incremental', 'domain_incremental'),
                         100.0 * sum(correct) FILTER (WHERE after_task NOT BETWEEN 0 AND task - 1)
                         / sum(images) FILTER (WHERE after_task NOT BETWEEN 0 AND task - 1), avg(accuracy)) END AS mean
    FROM chosen
    JOIN cells USING (run)
    GROUP BY run, after_task
), columns AS (
    SELECT name AS title, min(run * 4096 + task) AS place FROM cells GROUP BY name
    UNION ALL
    SELECT DISTINCT iif(weighted, 'all images', 'mean'), iif(weighted, 9.1e15, 9e15) FROM lines WHERE :dataset IS NULL
), accuracies AS ( -- rows of the matrix, a value per column; the last one is the mean over tasks or of all images so far
    SELECT lines.run AS run, lines.after_task AS after_task, after, title, place,
           CASE WHEN place < 9e15 THEN accuracy WHEN (place > 9e15) = weighted THEN mean END AS value
    FROM lines
    CROSS JOIN columns
    LEFT JOIN cells ON cells.run = lines.run AND cells.after_task = lines.after_task AND cells.name = title AND place < 9e15
)
-- === class-accuracy
-- Of the tasks of `examined`: shares of each class's images that were right, at three moments, and the classes.
tested AS (
    SELECT run, task, name, max(after_task) AS last
    FROM examined
    JOIN tasks USING (run, task)
    LEFT JOIN per_image USING (run, task)
    GROUP BY run, task
), moments AS (
    SELECT run, task, 'zero_shot' AS moment, -1 AS after_task FROM tested
    UNION ALL
    SELECT run, task, 'learned', task FROM tested
    UNION ALL
    SELECT run, task, 'last', last FROM tested WHERE last >= 0
), counted AS MATERIALIZED (
    SELECT moments.run AS run, moments.task AS task, moment, truth, count(*) AS images, 100.0 * sum("right") / count(*) AS share
    FROM moments
    JOIN images(moments.run, moments.task, moments.after_task)
    WHERE truth IS NOT NULL
    GROUP BY moments.run, moments.task, moment, truth
), labels AS ( -- a class may have stored labels though nothing of its images is kept
    SELECT run, task, class FROM tested JOIN task_classes USING (run, task)
    UNION
    SELECT run, task, truth FROM counted
)
-- === compared
-- What mtil compare finds (results/compare/): groups of the board, their contexts by number where there are several, and the questions about
-- them, each on the board of its first context.
-- A section with this part is left out where nothing is compared.
WITH compared_groups AS MATERIALIZED (
    SELECT grp, context, name, compared AS "by", iif(several, dense_rank() OVER (ORDER BY context), NULL) AS number
    FROM (SELECT *, max(context) OVER () > min(context) OVER () AS several
          FROM configuration AS one
          WHERE EXISTS (SELECT 1 FROM configuration AS earlier JOIN members USING (run)
                        WHERE earlier.context = one.context AND earlier.grp <= one.grp))
    CROSS JOIN page
), compared_pairs AS MATERIALIZED (
    SELECT answer.*, compared AS "by", count(*) OVER () > 600 AS cut
    FROM answer
    CROSS JOIN page
    WHERE (SELECT min(context) FROM term WHERE term.question = answer.question) IN (SELECT context FROM compared_groups)
)
-- === cost-baselines
-- The finished runs, and the configuration of each board that others are compared with.
WITH own AS MATERIALIZED (
    SELECT chosen.run AS run, seed, board, suite, label, row, min(chosen.run) OVER (PARTITION BY suite_hash) AS number
    FROM chosen
    JOIN names USING (run)
    JOIN labels ON hash = suite_hash
    WHERE status = 'finished'
), bases AS ( -- none where several configurations of a board have the name
    SELECT board, max(number) AS number
    FROM (SELECT DISTINCT board, number, row, label, max(row IS 'Dense') OVER (PARTITION BY board) AS dense,
                          min(number) OVER (PARTITION BY board) AS first
          FROM own)
    WHERE CASE WHEN :baseline IS NOT NULL THEN :baseline IN (row, label) WHEN dense THEN row IS 'Dense' ELSE number = first END
    GROUP BY board
    HAVING count(*) = 1
)
-- === costs
-- What each run of `priced` (run, seed, number, board, based) costs beside the run of its board that has its seed and is based;
-- what takes time or memory, beside those on its machine alone: `entries`, a column of the table each, whose numbers are means over seeds.
measures (place, title, timed) AS (
    VALUES (0, 'parameters', 0), (1, 'GFLOP/step', 0), (2, 'GFLOP/image', 0), (3, 's/step', 1), (4, 'images/s', 1),
           (5, 'peak_MiB', 1)
), measured AS MATERIALIZED (
    SELECT priced.*, machine, place, title, timed,
           CASE place WHEN 0 THEN 1.0 * parameters WHEN 1 THEN step_operations / 1e9 WHEN 2 THEN image_operations / 1e9
                      WHEN 3 THEN seconds_per_step WHEN 4 THEN images_per_second ELSE peak_bytes / 1048576.0 END AS value
    FROM priced
    CROSS JOIN costs USING (run)
    CROSS JOIN measures
), compared AS (
    SELECT o.number AS number, o.board AS board, o.machine AS machine, o.place AS place, o.title AS title, o.timed AS timed,
           o.based AS based, o.seed AS seed, iif(o.timed AND o.machine IS NULL, NULL, o.value) AS value, o.value / d.value AS ratio
    FROM measured AS o
    LEFT JOIN measured AS d ON d.based AND d.value > 0 AND (d.board, d.seed, d.place) = (o.board, o.seed, o.place)
                               AND (d.machine = o.machine OR NOT o.timed)
), means AS (
    SELECT number, board, machine, place, title, count(*) AS runs, count(ratio) FILTER (WHERE timed) AS pairs,
           mean(value, seed) AS value, nullif(half_width(value, seed), 0) AS half, mean(ratio, seed) AS ratio,
           iif(max(based), NULL, nullif(half_width(ratio, seed), 0)) AS of_ratio
    FROM compared
    GROUP BY number, board, machine, place
), sides (side, name) AS (
    VALUES (0, ''), (1, ' ±'), (2, '×'), (3, '× ±')
), entries AS (
    SELECT number, board, machine, runs, max(pairs) OVER (PARTITION BY number, board, machine) AS pairs, place, side,
           title || name AS title,
           CASE side WHEN 0 THEN value WHEN 1 THEN half WHEN 2 THEN ratio ELSE of_ratio END AS value
    FROM means
    CROSS JOIN sides
)
-- === frozen
-- Frozen experts of each block of the drawn runs after each task that their configuration's first run has trained; a task that
-- freezes nothing new keeps the count.
WITH freezes AS MATERIALIZED (
    SELECT run, encoder, block, target, min(task) AS task
    FROM drawn
    JOIN expert_events USING (run)
    WHERE event = 'freeze'
    GROUP BY run, encoder, block, target
), blocks AS MATERIALIZED (
    SELECT number, encoder, block, max(expert) + 1 AS experts, max(task) AS last
    FROM configurations
    JOIN expert_counts USING (run)
    WHERE colour IS NOT NULL
    GROUP BY number, encoder, block
), counted AS MATERIALIZED (
    SELECT drawn.run AS run, number, blocks.encoder AS encoder, blocks.block AS block, experts, board.task AS task,
           sum(count(target)) OVER (PARTITION BY drawn.run, blocks.encoder, blocks.block ORDER BY board.task) AS frozen
    FROM drawn
    JOIN blocks USING (number)
    JOIN board ON board.task <= last
    LEFT JOIN freezes ON (freezes.run, freezes.encoder, freezes.block, freezes.task) =
                         (drawn.run, blocks.encoder, blocks.block, board.task)
    GROUP BY drawn.run, blocks.encoder, blocks.block, board.task
)
-- === incomplete
SELECT count(*) || ' finished run' || iif(count(*) = 1, ' (', 's (') || group_concat(DISTINCT method)
       || iif(count(*) = 1, ') is', ') are') || ' not shown: the accuracy matrix has no row after each task. '
       || 'mtil query matrix shows what there is'
FROM chosen
WHERE status = 'finished' AND (SELECT count(*)
                               FROM evaluations
                               WHERE evaluations.run = chosen.run AND after_task BETWEEN 0 AND tasks - 1)
                              < iif(setting = 'class_incremental', tasks * (tasks + 1) / 2, tasks * tasks)
HAVING count(*) > 0
-- === measured
WITH measured AS ( -- the metrics of each run or, with a dataset, of its task
    SELECT run, NULL AS name
-- each: , {name}
    FROM metrics
    WHERE :dataset IS NULL
    UNION ALL
    SELECT run, name
-- each: , {name}
    FROM task_metrics
    JOIN tasks USING (run, task)
    WHERE :dataset IS NOT NULL AND name = :dataset -- the first half spares the work without one
)
-- === merges
-- What the merges of each drawn run did, as means; of runs in which iterations followed a merge.
WITH merged AS MATERIALIZED (
    SELECT number, run, avg(use) AS use, 100.0 * avg(use = 0) AS unused,
           avg(next_use) FILTER (WHERE NOT overwritten) AS next_use, avg(distance) AS distance, max(members.transfer) AS transfer
    FROM drawn
    JOIN merge_use USING (run)
    JOIN members USING (run, number)
    GROUP BY run
    HAVING avg(use) IS NOT NULL
)
-- === recognised
-- The first run of the best drawn configuration of whose test images anything is kept, its tasks, and its last tests.
WITH recognised AS MATERIALIZED (
    SELECT run, label, drawn.label || ', run ' || run AS of FROM drawn
    WHERE turn = 0 AND run IN (SELECT run FROM test_labels UNION SELECT run FROM task_classes)
    ORDER BY number
    LIMIT 1
)
-- === routed
routed AS ( -- where the images of each task were sent after the last one, in runs of `parts`, per `part` of them
    SELECT part, task, router, sum(count) AS count, sum(sum(count)) OVER (PARTITION BY part, task) AS images,
           100.0 * sum(count) / sum(sum(count)) OVER (PARTITION BY part, task) AS share, max(after_task) AS after_task
    FROM parts
    JOIN router_choices USING (run)
    WHERE after_task = (SELECT max(after_task) FROM router_choices AS last WHERE last.run = parts.run)
    GROUP BY part, task, router
)
-- === served
-- The first run of the best drawn configuration with experts by class: experts of different runs have nothing to do with one
-- another. Its choices in the last test, and its experts.
WITH served AS MATERIALIZED (
    SELECT run, label || ', seed ' || seed AS of FROM drawn
    WHERE turn = 0 AND run IN (SELECT run FROM class_experts)
    ORDER BY number
    LIMIT 1
), usage AS MATERIALIZED (
    SELECT task, block, class, expert, count, sum(count) OVER of_class AS images, 100.0 * count / sum(count) OVER of_class AS share,
           gate * count / sum(count) OVER of_class AS gate
    FROM served
    JOIN class_experts USING (run)
    WINDOW of_class AS (PARTITION BY task, block, class)
), experts(expert) AS (
    SELECT 0
    UNION ALL
    SELECT expert + 1 FROM experts WHERE expert < (SELECT max(expert) FROM expert_counts WHERE run IN (SELECT run FROM served))
)
-- === standing
-- Of `seen` (part, metric, number, seed, value): what stands out of each part and metric. That is the best mean and whatever an exact
-- test over common seeds does not tell from it, where it tells anything from it, corrected for all pairs, because the best one is
-- chosen by its result.
leading AS MATERIALIZED (
    SELECT part, metric, number, seeds, max(iif(lower, -mean, mean)) AS most, count(*) * (count(*) - 1) / 2 AS tests
    FROM (SELECT part, metric, number, count(*) AS seeds, avg(value) AS mean FROM seen WHERE value IS NOT NULL GROUP BY part, metric, number)
    JOIN (SELECT name AS metric, best = 'lowest' AS lower FROM metric_list) USING (metric)
    GROUP BY part, metric
), compared AS MATERIALIZED (
    SELECT part, metric, o.number AS number, permutation_p(o.value - b.value, o.seed, 1) * tests <= 0.05 AS apart,
           least_p(count(*)) * tests <= 0.05 AS tellable
    FROM leading
    CROSS JOIN seen AS b USING (part, metric, number)
    CROSS JOIN seen AS o USING (part, metric, seed)
    WHERE least_p(seeds) * tests <= 0.05 AND o.value IS NOT NULL -- else no test could tell
    GROUP BY part, metric, o.number
), supported AS MATERIALIZED (
    SELECT part, metric, number
    FROM (SELECT *, max(apart) OVER (PARTITION BY part, metric) AS told FROM compared)
    WHERE told AND tellable AND NOT apart
)
-- === tested
-- Of the runs of `examined`: the last test of each task.
placed AS ( -- the number of a task's first class among those of all tasks
    SELECT run, task, tasks.name AS name, classes, sum(classes) OVER (PARTITION BY run ORDER BY task) - classes AS first,
           setting IN ('x_tail', 'class_incremental', 'open_domain') AS joint
    FROM examined
    JOIN runs USING (run)
    JOIN tasks USING (run)
), tested AS (
    SELECT run, task, name, classes, first, joint, max(after_task) AS after_task
    FROM placed
    JOIN per_image USING (run, task)
    GROUP BY run, task
)
-- === trajectories
-- Where the experts of the runs of `followed` (run) were: each bank's sketches on their two main directions, from the mean of all on.
moments AS MATERIALIZED ( -- and the moment before
    SELECT run, task, iteration, coalesce(lag(task) OVER line, -1) AS last_task, coalesce(lag(iteration) OVER line, 0) AS last_iteration
    FROM (SELECT DISTINCT run, task, iteration FROM followed JOIN expert_sketches USING (run))
    WINDOW line AS (PARTITION BY run ORDER BY task, iteration)
), directions AS MATERIALIZED (
    SELECT run, encoder, block, main_axes(sketch) AS axes
    FROM (SELECT run, encoder, block, sketch
          FROM followed
          JOIN expert_sketches USING (run)
          ORDER BY run, encoder, block, task, iteration, expert)
    GROUP BY run, encoder, block
), trajectories AS MATERIALIZED (
    SELECT run, task, iteration, encoder, block, expert, along(sketch, axes, 1) AS x, along(sketch, axes, 2) AS y,
           100 * axis_share(axes, 1) AS x_share, 100 * axis_share(axes, 2) AS y_share, distance,
           avg(distance) OVER (PARTITION BY run, task, iteration, encoder, block) AS spread,
           (SELECT CASE WHEN max(event = 'freeze') THEN 'frozen' WHEN max((of.task, of.iteration) > (last_task, last_iteration)) THEN 'merged' END
            FROM expert_events AS of
            WHERE of.run = s.run AND of.encoder = s.encoder AND of.block = s.block AND of.target = s.expert AND of.event <> 'skip'
                  AND (of.task, of.iteration) <= (s.task, s.iteration)
                  AND (event = 'freeze' OR (of.task, of.iteration) > (last_task, last_iteration))) AS event
    FROM expert_sketches AS s
    JOIN moments USING (run, task, iteration)
    JOIN directions USING (run, encoder, block)
)
-- === wanted
-- The settings that --where asks for: words without "=" continue the list before them.
WITH words (place, word) AS (
    SELECT key, value FROM json_each('[' || replace(json_quote(:where), ',', '","') || ']') WHERE :where IS NOT NULL
), wanted AS (
    SELECT trim(substr(condition, 1, instr(condition, '=') - 1)) AS key, trim(substr(condition, instr(condition, '=') + 1)) AS value
    FROM (SELECT group_concat(word, ',') AS condition
          FROM (SELECT word, (SELECT max(place) FROM words AS first WHERE first.place <= words.place AND instr(first.word, '=')) AS begin
                FROM words
                ORDER BY place)
          GROUP BY begin)
), fitting AS ( -- numbers in any notation, lists with commas, blanks or both between their words
    SELECT run, wanted.key AS key, wanted.value AS value
    FROM wanted
    CROSS JOIN runs
    CROSS JOIN settings USING (run, key)
    WHERE settings.value = wanted.value
          OR settings.value = iif(json_valid(wanted.value), json_extract(wanted.value, '$'), NULL)
          OR type = 'list' AND trim(replace(replace(replace(replace(settings.value, '[', ''), ']', ''), ', ', ' '), ',', ' '))
                               = trim(replace(replace(replace(replace(wanted.value, '[', ''), ']', ''), ', ', ' '), ',', ' '))
)
-- === paper-table-instead
SELECT CASE WHEN count(*) > 0 AND count(*) = sum(tasks = 1 AND run IN (SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear'))
            THEN 'paper-table-of-classifiers'
            WHEN :setting IN ('class_incremental', 'domain_incremental')
                 OR count(*) > 0 AND sum(setting NOT IN ('class_incremental', 'domain_incremental')) = 0
            THEN 'paper-table-of-classes' END
FROM chosen
WHERE status = 'finished'
-- === paper-table
-- The table of MTIL papers. Finished runs are averaged over seeds. A configuration has its label (`labels` of query/filter.sql); its number is
-- that of its first run. The mean is empty where a row lacks a dataset that others have, because it would be a mean over other
-- tasks. Published rows are those of the settings and orders of the runs, or all where there are no runs; one is left out
-- of blocks in which it has no number.
-- What stands out is the best and whatever a test does not tell from it, where it tells anything from it.
WITH sequences AS (
    SELECT *
    FROM chosen
    WHERE status = 'finished' AND setting NOT IN ('class_incremental', 'domain_incremental')
          AND NOT (tasks = 1 AND run IN (SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear'))
), other AS ( -- runs unlike those of papers: other test sets, or the small CLIP
    SELECT run
    FROM sequences
    WHERE :published AND (model = 'mini' OR EXISTS (
        SELECT 1
        FROM tasks
        WHERE tasks.run = sequences.run AND NOT EXISTS (
            SELECT 1
            FROM published_images
            WHERE dataset = name AND test_images BETWEEN 0.9 * images AND images)))
), otherwise AS ( -- runs with other numbers of images per class than printed for their setting
    SELECT run
    FROM sequences
    JOIN settings USING (run)
    WHERE :published AND key = 'data.shots'
          AND CAST(value AS INTEGER) NOT IN (SELECT shots FROM published_rows AS p WHERE p.setting = sequences.setting)
), seeds AS MATERIALIZED (
    SELECT run, seed, min(run) OVER (PARTITION BY suite_hash) AS number FROM sequences
), called AS MATERIALIZED (
    SELECT number, label || iif(count(*) OVER (PARTITION BY label) > 1, ', ' || substr(hash, 1, 8), '') -- learns other tasks
           || iif(:published AND model NOT IN ('mini', '') AND model NOT LIKE '%b_16%' AND model NOT LIKE '%b16%'
                  AND NOT instr(label, model), ', ' || model, '') -- papers have ViT-B/16
           || CASE WHEN c.run IN other THEN ' (other data than in papers)'
                   WHEN c.run IN otherwise THEN ' (other setting than in papers)' ELSE '' END AS method
    FROM (SELECT DISTINCT number FROM seeds)
    JOIN sequences AS c ON c.run = number
    JOIN labels ON hash = suite_hash
), per_run AS MATERIALIZED ( -- where a task was not tested after each other, what its latest accuracy says
    SELECT run, number, seed, name, task
-- each paper: , iif(whole, {name}, {latest}) AS {name}
    FROM (SELECT run, task, max(after_task) AS after_task,
                 count(*) FILTER (WHERE after_task BETWEEN 0 AND tasks - 1) = tasks AS whole
-- each paper: , {sql} AS {name}
          FROM (SELECT run, tasks FROM runs WHERE run IN (SELECT run FROM seeds)) -- in the order of evaluations
          JOIN (SELECT run, task, after_task, 100.0 * correct / images AS accuracy FROM evaluations) USING (run)
          GROUP BY run, task)
    CROSS JOIN seeds USING (run)
    CROSS JOIN tasks USING (run, task)
    LEFT JOIN (SELECT run AS tested, task AS of, after_task AS latest, 100.0 * correct / images AS accuracy FROM evaluations)
           ON NOT whole AND (tested, of, latest) = (run, task, after_task)
    WHERE :dataset IS NULL OR name = :dataset
), observed AS MATERIALIZED ( -- the mean has no name, so that no dataset can be mistaken for it
    SELECT * FROM per_run
    UNION ALL
    SELECT run, number, seed, NULL, NULL -- a run that lacks a task has no mean
-- each paper: , iif(count({name}) = count(*) - {skips}, avg({name}), NULL)
    FROM per_run
    WHERE :dataset IS NULL
    GROUP BY run
), means AS MATERIALIZED (
    SELECT number, name, min(run * 4096 + task) AS place, count(*) AS seeds
-- each paper: , avg({name}) AS {name}, half_width({name}) AS of_{name}
    FROM observed
    GROUP BY number, name
), papers AS MATERIALIZED (
    SELECT row, min(row) OVER (PARTITION BY source, method, setting, task_order) AS number, source, method, task_order, metric,
           coalesce(mean, (SELECT avg(value) FROM json_each(accuracies))) AS mean
    FROM published_rows
    WHERE :published AND (:setting IS NULL OR setting = :setting)
          AND (NOT EXISTS (SELECT 1 FROM seeds)
               OR (setting, task_order) IN (SELECT setting, task_order FROM sequences))
), printed AS MATERIALIZED (
    SELECT number, papers.metric AS metric, dataset AS name, 9e15 + task AS place, accuracy AS value
    FROM papers
    JOIN published USING (row)
    WHERE :dataset IS NULL OR dataset = :dataset
), datasets AS MATERIALIZED (
    SELECT name, min(place) AS place
    FROM (SELECT name, place FROM means UNION ALL SELECT name, place FROM printed)
    WHERE name IS NOT NULL
    GROUP BY name
), blocks AS MATERIALIZED (
    SELECT place AS block, name AS metric, title AS shown, best = 'lowest' AS lower, low, high FROM metric_list WHERE tags LIKE '%paper%'
), cells AS MATERIALIZED (
    SELECT 1 AS own, number, metric, name, seeds, CASE metric
-- each paper: WHEN '{name}' THEN {name}
           END AS value, CASE metric
-- each paper: WHEN '{name}' THEN of_{name}
           END AS half
    FROM (SELECT *, count(name) OVER (PARTITION BY number) = (SELECT count(*) FROM datasets) AS whole FROM means)
    CROSS JOIN blocks
    WHERE whole OR name IS NOT NULL
    UNION ALL
    SELECT 0, number, metric, name, NULL, value, NULL FROM printed
    UNION ALL
    SELECT 0, number, metric, NULL, NULL, iif((SELECT count(*) FROM published_tasks AS t WHERE t.task_order = papers.task_order)
                                              = (SELECT count(*) FROM datasets), mean, NULL), NULL
    FROM papers
    WHERE :dataset IS NULL AND mean IS NOT NULL
), seen AS MATERIALIZED ( -- of rows that have a number in the table
    SELECT coalesce(name, '') AS part, metric, number, seed, CASE metric
-- each paper: WHEN '{name}' THEN {name}
           END AS value
    FROM observed
    CROSS JOIN blocks
    WHERE NOT :published AND (metric, number, name IS NULL) IN (
        SELECT metric, number, name IS NULL FROM cells WHERE own AND value IS NOT NULL)
),
-- include: standing
, lines AS MATERIALIZED (
    SELECT 1 AS own, number, method, runs
    FROM (SELECT number, max(seeds) AS runs FROM means GROUP BY number)
    JOIN called USING (number)
    UNION ALL
    SELECT DISTINCT 0, number, method || ', published (' || source || ')', NULL FROM papers
), columns AS ( -- side: the number, or its ± beside it; brief: a table with one ± a row has it
    SELECT *, side = '' OR name IS NULL OR :dataset IS NOT NULL AS brief,
           iif(side <> '' AND (name IS NULL OR :dataset IS NOT NULL), '±', coalesce(name, 'mean') || side) AS title
    FROM (SELECT name, place FROM datasets UNION ALL SELECT NULL, 1e16 WHERE :dataset IS NULL)
    JOIN (SELECT '' AS side UNION ALL SELECT ' ±') ON side = '' OR EXISTS (SELECT 1 FROM seeds)
), entries AS (
    SELECT block, lines.own AS own, lines.number AS number, shown AS metric, method, runs AS seeds, place, side, brief, title,
           iif(side = '', value, plus_minus(value, half, low, high)) AS value,
           side = '' AND lines.own AND (blocks.metric, coalesce(columns.name, ''), lines.number) IN (
               SELECT metric, part, number FROM supported) AS supported
    FROM lines
    CROSS JOIN blocks
    CROSS JOIN columns
    LEFT JOIN cells ON cells.own = lines.own AND cells.number = lines.number AND cells.metric = blocks.metric AND cells.name IS columns.name
    WHERE lines.own OR (lines.number, blocks.metric) IN (SELECT number, metric FROM cells WHERE NOT own)
)
