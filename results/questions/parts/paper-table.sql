-- The table of MTIL papers. Finished runs are averaged over seeds. A configuration has the name of its first run (view names), with
-- whatever else differs in the table and, where names coincide, its digest; its number is that
-- of its first run. The mean is empty where a row lacks a dataset that others have, because it would be a mean over other
-- tasks. Published rows are those of the settings and orders of the runs, or all where there are no runs; one is left out
-- of blocks in which it has no number.
-- What stands out is the best and whatever a test does not tell from it, where it tells anything from it.
sequences AS (
    SELECT *
    FROM chosen
    WHERE status = 'finished' AND setting NOT IN ('class_incremental', 'domain_incremental')
          AND run NOT IN (SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear')
), varied AS (
    SELECT count(DISTINCT suite) > 1 AS suite, count(DISTINCT setting) > 1 AS setting,
           count(DISTINCT selector) FILTER (WHERE selector <> 'none') > 1 AS selector,
           count(DISTINCT selection) FILTER (WHERE selection <> 'none') > 1 AS selection,
           count(DISTINCT task_order) > 1 AS task_order, count(DISTINCT model) > 1 AS model
    FROM sequences
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
    SELECT c.run AS run, min(c.run) OVER (PARTITION BY suite_hash) AS number, substr(suite_hash, 1, 8) AS digest,
           c.seed AS seed,
           n.row || iif(v.suite, ', ' || c.suite, '')
           || iif(v.setting, ', ' || c.setting, '')
           || iif(NOT given AND v.selector AND c.selector <> 'none', ', ' || c.selector, '')
           || iif(NOT given AND v.selection AND c.selection <> 'none', ', ' || c.selection, '')
           || iif(v.task_order, ', order ' || c.task_order, '')
           || iif(v.model OR :published AND c.model NOT IN ('mini', '') AND c.model NOT LIKE '%b_16%' AND c.model NOT LIKE '%b16%',
                  ', ' || c.model, '') -- papers have ViT-B/16
           || CASE WHEN c.run IN other THEN ' (other data than in papers)'
                   WHEN c.run IN otherwise THEN ' (other setting than in papers)' ELSE '' END AS label
    FROM sequences AS c
    JOIN names AS n ON n.run = (SELECT min(run) FROM sequences AS first WHERE first.suite_hash = c.suite_hash),
         varied AS v
), complete AS MATERIALIZED (
    SELECT run, task, transfer, average, last, forgetting
    FROM task_metrics
    CROSS JOIN seeds USING (run)
), measured AS ( -- with the latest accuracy of tasks that were not tested after each other; zero-shot accuracy in all blocks
    SELECT * FROM complete
    UNION ALL
    SELECT run, task, iif(latest = -1 AND task > 0, accuracy, NULL), iif(latest = -1, accuracy, NULL), accuracy, NULL
    FROM (
        SELECT run, task, max(after_task) AS latest, 100.0 * correct / images AS accuracy -- of the row with the maximum
        FROM seeds
        CROSS JOIN tasks USING (run)
        CROSS JOIN evaluations USING (run, task)
        WHERE (run, task) NOT IN (SELECT run, task FROM complete)
        GROUP BY run, task
    )
), per_run AS MATERIALIZED (
    SELECT run, seed, number, label, digest, name, task, transfer, average, last, forgetting
    FROM measured
    CROSS JOIN seeds USING (run)
    CROSS JOIN tasks USING (run, task)
    WHERE :dataset IS NULL OR name = :dataset
), papers AS MATERIALIZED (
    SELECT min(row) AS number, source, method, setting, task_order,
           max(mean) FILTER (WHERE metric = 'transfer') AS transfer, max(mean) FILTER (WHERE metric = 'average') AS average,
           max(mean) FILTER (WHERE metric = 'last') AS last
    FROM published_rows
    WHERE :published AND (:setting IS NULL OR setting = :setting)
          AND (NOT EXISTS (SELECT 1 FROM seeds)
               OR (setting, task_order) IN (SELECT setting, task_order FROM sequences))
    GROUP BY source, method, setting, task_order
), cells AS MATERIALIZED (
    SELECT 1 AS own, number, max(label) AS label, max(digest) AS digest, count(*) AS seeds, name,
           min(run * 4096 + task) AS place, avg(transfer) AS transfer, avg(average) AS average, avg(last) AS last,
           avg(forgetting) AS forgetting, half_width(transfer) AS of_transfer, half_width(average) AS of_average,
           half_width(last) AS of_last, half_width(forgetting) AS of_forgetting
    FROM per_run
    GROUP BY number, name
    UNION ALL
    SELECT 0, number, '', '', NULL, dataset, 9e15 + task,
           max(accuracy) FILTER (WHERE metric = 'transfer'), max(accuracy) FILTER (WHERE metric = 'average'),
           max(accuracy) FILTER (WHERE metric = 'last'), NULL, NULL, NULL, NULL, NULL
    FROM published
    JOIN papers USING (source, method, setting, task_order)
    WHERE :dataset IS NULL OR dataset = :dataset
    GROUP BY number, dataset
), datasets AS MATERIALIZED (
    SELECT name, min(place) AS place FROM cells GROUP BY name
), printed AS MATERIALIZED (
    SELECT number, avg(transfer) AS transfer, avg(average) AS average, avg(last) AS last
    FROM cells
    WHERE NOT own
    GROUP BY number
), lines AS MATERIALIZED (
    SELECT own, number,
           max(label) || iif(count(*) OVER (PARTITION BY max(label)) > 1, ', ' || max(digest), '') AS method,
           max(seeds) AS seeds, count(*) = (SELECT count(*) FROM datasets) AS whole, avg(transfer) AS transfer,
           avg(average) AS average, avg(last) AS last, avg(forgetting) AS forgetting
    FROM cells
    WHERE own
    GROUP BY number
    UNION ALL
    SELECT 0, papers.number, method || ', published (' || source || ')', NULL,
           (SELECT count(*) FROM published_tasks AS t WHERE t.task_order = papers.task_order)
           = (SELECT count(*) FROM datasets),
           coalesce(papers.transfer, printed.transfer), coalesce(papers.average, printed.average),
           coalesce(papers.last, printed.last), NULL
    FROM papers
    LEFT JOIN printed ON printed.number = papers.number
    WHERE :dataset IS NULL OR printed.number IS NOT NULL
), blocks (block, metric, lower) AS (VALUES (0, 'Transfer', 0), (1, 'Average', 0), (2, 'Last', 0), (3, 'Forgetting', 1)
), means AS MATERIALIZED (
    SELECT number, seed, avg(transfer) AS transfer, avg(average) AS average, avg(last) AS last, avg(forgetting) AS forgetting
    FROM per_run
    WHERE number IN (SELECT number FROM lines WHERE own AND whole)
    GROUP BY run
), observed AS ( -- of each run; the mean has no name, so that no dataset can be mistaken for it
    SELECT number, seed, name, transfer, average, last, forgetting FROM per_run
    UNION ALL
    SELECT number, seed, NULL, transfer, average, last, forgetting FROM means
), halves AS MATERIALIZED (
    SELECT number, name, seeds, transfer, average, last, forgetting, of_transfer, of_average, of_last, of_forgetting
    FROM cells
    WHERE own
    UNION ALL
    SELECT number, NULL, count(*), avg(transfer), avg(average), avg(last), avg(forgetting), half_width(transfer),
           half_width(average), half_width(last), half_width(forgetting)
    FROM means
    GROUP BY number
), spread AS MATERIALIZED (
    SELECT *
    FROM (SELECT 0 AS block, 0 AS lower, number, name, seeds AS n, transfer AS value FROM halves
          UNION ALL
          SELECT 1, 0, number, name, seeds, average FROM halves
          UNION ALL
          SELECT 2, 0, number, name, seeds, last FROM halves
          UNION ALL
          SELECT 3, 1, number, name, seeds, forgetting FROM halves)
    WHERE value IS NOT NULL
), leading AS MATERIALIZED (
    SELECT block, name, number, n, max(iif(lower, -value, value)) AS most, count(*) * (count(*) - 1) / 2 AS tests
    FROM spread
    GROUP BY block, name
), behind AS MATERIALIZED ( -- over the seeds of both, corrected for all pairs of a column, because the best one is chosen by its result
    SELECT block, name, number, permutation_p(difference, seed, 1) * tests <= 0.05 AS apart, least_p(count(*)) * tests <= 0.05 AS tellable
    FROM (SELECT block, tests, o.name AS name, o.number AS number, o.seed AS seed,
                 CASE block WHEN 0 THEN o.transfer - b.transfer WHEN 1 THEN o.average - b.average
                            WHEN 2 THEN o.last - b.last ELSE o.forgetting - b.forgetting END AS difference
          FROM leading
          CROSS JOIN observed AS b ON b.name IS leading.name AND b.number = leading.number
          CROSS JOIN observed AS o ON o.name IS b.name AND o.seed = b.seed AND o.number <> b.number
          WHERE least_p(n) * tests <= 0.05) -- else no test could tell
    WHERE difference IS NOT NULL
    GROUP BY block, name, number
), supported AS MATERIALIZED (
    SELECT block, name, number
    FROM (SELECT block, name, number FROM leading
          UNION ALL
          SELECT block, name, number FROM behind WHERE tellable AND NOT apart) AS marked
    WHERE NOT :published AND EXISTS (SELECT 1 FROM behind WHERE apart AND behind.block = marked.block AND behind.name IS marked.name)
), filled AS MATERIALIZED (
    SELECT own, number, name, transfer, average, last, forgetting, of_transfer, of_average, of_last, of_forgetting FROM cells
    UNION ALL
    SELECT own, lines.number, NULL, lines.transfer, lines.average, lines.last, lines.forgetting, of_transfer, of_average, of_last,
           of_forgetting
    FROM lines
    LEFT JOIN halves ON own AND halves.number = lines.number AND halves.name IS NULL
    WHERE whole
), columns AS ( -- side: the number, or its ± beside it; brief: a table with one ± a row has it
    SELECT *, side = '' OR name IS NULL OR :dataset IS NOT NULL AS brief,
           iif(side <> '' AND (name IS NULL OR :dataset IS NOT NULL), '±', coalesce(name, 'mean') || side) AS title
    FROM (SELECT name, place FROM datasets UNION ALL SELECT NULL, 1e16 WHERE :dataset IS NULL)
    JOIN (SELECT '' AS side UNION ALL SELECT ' ±') ON side = '' OR EXISTS (SELECT 1 FROM seeds)
), entries AS (
    SELECT blocks.block AS block, lines.own AS own, lines.number AS number, metric, method, seeds, place, side, brief, title,
           CASE block + 4 * (side <> '')
               WHEN 0 THEN filled.transfer WHEN 1 THEN filled.average WHEN 2 THEN filled.last WHEN 3 THEN filled.forgetting
               WHEN 4 THEN plus_minus(filled.transfer, of_transfer, 0, 100) WHEN 5 THEN plus_minus(filled.average, of_average, 0, 100)
               WHEN 6 THEN plus_minus(filled.last, of_last, 0, 100) ELSE plus_minus(filled.forgetting, of_forgetting, 0, 100) END AS value,
           side = '' AND lines.own AND (blocks.block, lines.number, coalesce(columns.name, '')) IN (
               SELECT block, number, coalesce(name, '') FROM supported) AS supported
    FROM lines
    CROSS JOIN blocks
    CROSS JOIN columns
    LEFT JOIN filled ON filled.own = lines.own AND filled.number = lines.number AND filled.name IS columns.name
    WHERE lines.own OR CASE blocks.block WHEN 0 THEN lines.transfer WHEN 1 THEN lines.average WHEN 2 THEN lines.last ELSE lines.forgetting END IS NOT NULL
)
