-- The table of MTIL papers. Finished runs are averaged over seeds. A configuration has its label (query/labels.sql); its number is
-- that of its first run. The mean is empty where a row lacks a dataset that others have, because it would be a mean over other
-- tasks. Published rows are those of the settings and orders of the runs, or all where there are no runs; one is left out
-- of blocks in which it has no number.
-- What stands out is the best and whatever a test does not tell from it, where it tells anything from it.
sequences AS (
    SELECT *
    FROM chosen
    WHERE status = 'finished' AND setting NOT IN ('class_incremental', 'domain_incremental')
          AND run NOT IN (SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear')
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
          AND value <> CASE setting WHEN 'few_shot' THEN '5' WHEN 'x_tail' THEN '16' ELSE value END
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
), leading AS MATERIALIZED (
    SELECT metric, name, number, seeds, max(iif(lower, -value, value)) AS most, count(*) * (count(*) - 1) / 2 AS tests
    FROM cells
    JOIN blocks USING (metric)
    WHERE own AND value IS NOT NULL
    GROUP BY metric, name
), compared AS MATERIALIZED ( -- over the seeds of both, corrected for all pairs of a column, because the best one is chosen by its result
    SELECT metric, name, number, permutation_p(difference, seed, 1) * tests <= 0.05 AS apart, least_p(count(*)) * tests <= 0.05 AS tellable
    FROM (SELECT metric, tests, o.name AS name, o.number AS number, o.seed AS seed, CASE metric
-- each paper: WHEN '{name}' THEN o.{name} - b.{name}
                 END AS difference
          FROM leading
          CROSS JOIN observed AS b ON b.name IS leading.name AND b.number = leading.number
          CROSS JOIN observed AS o ON o.name IS b.name AND o.seed = b.seed
          WHERE least_p(seeds) * tests <= 0.05 AND NOT :published) -- else no test could tell
    WHERE difference IS NOT NULL
    GROUP BY metric, name, number
), supported AS (
    SELECT metric, coalesce(name, '') AS name, number
    FROM (SELECT *, max(apart) OVER (PARTITION BY metric, name) AS told FROM compared)
    WHERE told AND tellable AND NOT apart
), lines AS MATERIALIZED (
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
               SELECT metric, name, number FROM supported) AS supported
    FROM lines
    CROSS JOIN blocks
    CROSS JOIN columns
    LEFT JOIN cells ON cells.own = lines.own AND cells.number = lines.number AND cells.metric = blocks.metric AND cells.name IS columns.name
    WHERE lines.own OR (lines.number, blocks.metric) IN (SELECT number, metric FROM cells WHERE NOT own)
)
