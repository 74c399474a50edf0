-- Tables in the form of papers.
-- === paper-table
-- title: methods × datasets, a block for each of Transfer, Average, Last and Forgetting
-- column: metric once
-- column: block,own,number,supported hidden
-- column: * right 1
-- block: block
-- wide: title value
-- mark: supported
-- include: paper-table
SELECT block, own, number, metric, method, seeds, title, value, supported
FROM entries
WHERE brief
ORDER BY block, own, number, place, side
-- instead:
-- include: paper-table-instead
-- refuse:
SELECT '--baseline is for the table of classifiers; with runs of other kinds in the database, choose them with --method supervised'
WHERE :baseline IS NOT NULL
-- === paper-table-of-classes
-- column: own,number hidden
-- column: * right 1
-- column: "Avg ±","Last ±" right 1
-- wide: title value

-- The table of class- and domain-incremental papers: Avg and Last over all images of the tasks so far, means over seeds of finished
-- runs. A single training on all tasks has no Avg.
WITH own AS MATERIALIZED (
    SELECT c.run AS run, min(c.run) OVER (PARTITION BY suite_hash) AS number,
           c.tasks AS tasks, iif(setting = 'domain_incremental', task_order, trim(s.value, '[]')) AS dataset,
           c.model = 'mini' AS mini, average, m.accuracy AS last,
           iif(:published AND c.model NOT IN ('mini', '') AND c.model NOT LIKE '%b_16%' AND c.model NOT LIKE '%b16%',
               ', ' || c.model, '') AS model, -- papers have ViT-B/16
           setting = 'domain_incremental' OR EXISTS ( -- in an order of classes with which a paper has numbers
               SELECT 1
               FROM settings AS o
               JOIN published_steps AS p ON p.dataset = trim(s.value, '[]')
               WHERE o.run = c.run AND o.key = 'data.class_order'
                     AND trim(o.value, '[]') = coalesce(p.class_order, replace(p.dataset, '_', ''))) AS in_order,
           label
    FROM chosen AS c
    JOIN mean_accuracy AS m ON m.run = c.run AND m.after_task = c.tasks - 1
    LEFT JOIN metrics ON metrics.run = c.run
    LEFT JOIN settings AS s ON s.run = c.run AND s.key = 'data.order'
    JOIN labels ON labels.hash = suite_hash
    WHERE status = 'finished' AND setting IN ('class_incremental', 'domain_incremental')
), sizes AS (
    SELECT run, sum(test_images) AS images FROM own JOIN tasks USING (run) GROUP BY run
), marked AS (
    SELECT own.*, :published AND (mini OR (
               SELECT sum(sizes.images BETWEEN 0.9 * p.images AND p.images) = 0 -- NULL: the number is not known
               FROM published_images AS p
               WHERE p.dataset = own.dataset)) AS other
    FROM own
    JOIN sizes USING (run)
), lines AS (
    SELECT 1 AS own, number, dataset, tasks,
           max(label) || max(model)
           || CASE WHEN max(other) THEN ' (other data than in papers)'
                   WHEN :published AND NOT max(in_order) THEN ' (other setting than in papers)' ELSE '' END AS method,
           count(*) AS seeds, avg(average) AS average, avg(last) AS last,
           plus_minus(avg(average), half_width(average), 0, 100) AS average_half,
           plus_minus(avg(last), half_width(last), 0, 100) AS last_half
    FROM marked
    GROUP BY number
    UNION ALL
    SELECT 0, row, dataset, tasks, method || ', published (' || source || ')', NULL, average, last, NULL, NULL
    FROM published_steps
    WHERE :published AND (NOT EXISTS (SELECT 1 FROM own) OR (dataset, tasks) IN (SELECT dataset, tasks FROM own))
), columns (place, title) AS (VALUES (0, 'Avg'), (1, 'Avg ±'), (2, 'Last'), (3, 'Last ±'))
SELECT own, number, dataset, tasks, method, seeds, title,
       CASE place WHEN 0 THEN average WHEN 1 THEN average_half WHEN 2 THEN last ELSE last_half END AS value
FROM lines
CROSS JOIN columns
ORDER BY dataset, tasks, own, number, place
-- === paper-table-of-classifiers
-- column: suite,dataset once
-- column: sheet hidden
-- column: trained_parameters,pairs,difference 2
-- column: "accuracy ±","difference ±" right 2
-- column: accuracy 2
-- block: sheet

-- The table of papers that train classifiers: the difference is from the baseline (null: the row Dense) over common seeds. It
-- is empty where several configurations of a suite and dataset have the baseline's name, because the name is ambiguous.
WITH own AS MATERIALIZED (
    SELECT c.run AS run, seed, suite, min(c.run) OVER (PARTITION BY suite_hash) AS number,
           t.name AS dataset, test_digest, test_images, model = 'scratch' AS scratch, model = 'mini' AS mini,
           trainable_parameters AS parameters, 100.0 * correct / images AS accuracy,
           row, label
    FROM chosen AS c
    JOIN tasks AS t ON t.run = c.run AND t.task = 0
    JOIN evaluations AS e ON e.run = c.run AND e.task = 0 AND e.after_task = 0
    JOIN names ON names.run = c.run
    JOIN labels ON labels.hash = suite_hash
    WHERE status = 'finished' AND (:dataset IS NULL OR t.name = :dataset)
          AND c.tasks = 1 AND c.run IN (SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear')
), baselines AS (
    SELECT suite, dataset, test_digest, number
    FROM own
    WHERE row = coalesce(:baseline, 'Dense')
    GROUP BY suite, dataset, test_digest
    HAVING min(number) = max(number)
), differences AS (
    SELECT o.number AS number, count(*) AS pairs, avg(o.accuracy - d.accuracy) AS difference,
           half_width(o.accuracy - d.accuracy) AS half
    FROM own AS o
    JOIN baselines AS b USING (suite, dataset, test_digest)
    JOIN own AS d ON d.number = b.number AND d.seed = o.seed
    WHERE o.number <> b.number
    GROUP BY o.number
), means AS (
    SELECT suite, dataset, number, max(scratch) AS scratch, max(label) AS label,
           :published AND (max(mini) OR NOT EXISTS (
               SELECT 1
               FROM published_images AS p
               WHERE p.dataset = own.dataset AND own.test_images BETWEEN 0.9 * p.images AND p.images)) AS other,
           count(*) AS seeds, max(parameters) AS parameters, avg(accuracy) AS accuracy,
           plus_minus(avg(accuracy), half_width(accuracy), 0, 100) AS half
    FROM own
    GROUP BY number
), lines AS (
    SELECT suite, dataset, 0 AS printed, number,
           label || iif(other, ' (other data than in papers)', '') AS classifier,
           seeds, parameters, accuracy, means.half AS accuracy_half, pairs, difference,
           differences.half AS difference_half
    FROM means
    LEFT JOIN differences USING (number)
    UNION ALL
    SELECT suite, dataset, 1, row, method || ', published (' || source || ')', NULL, NULL, accuracy, NULL, NULL, difference, NULL
    FROM (SELECT DISTINCT suite, dataset, scratch FROM means)
    JOIN published_classifiers USING (dataset, scratch)
    WHERE :published
)
SELECT suite, dataset, suite || ' ' || dataset AS sheet, classifier, seeds, parameters AS trained_parameters, accuracy,
       accuracy_half AS "accuracy ±", pairs, difference, plus_minus(difference, difference_half, -100, 100) AS "difference ±",
       -- Differences that are the same to the last image say nothing of how far others would be apart.
       CASE WHEN abs(difference) <= difference_half OR difference_half < 1e-5 THEN 'not established'
            WHEN difference_half IS NULL THEN NULL
            WHEN difference > 0 THEN 'above' ELSE 'below' END AS direction
FROM lines
ORDER BY min(number) FILTER (WHERE printed = 0) OVER (PARTITION BY suite), suite,
         min(number) FILTER (WHERE printed = 0) OVER (PARTITION BY suite, dataset), dataset, printed, number
-- refuse:
SELECT 'baseline "' || :baseline || '": expected the row of one configuration of a suite, with others beside it on the same '
       || 'images and seeds; found none'
WHERE :baseline IS NOT NULL
      AND NOT EXISTS (
          SELECT 1
          FROM settings
          JOIN chosen USING (run)
          WHERE key = 'run.row' AND value = :baseline AND status = 'finished')
-- === paper-table-spread
-- title: paper-table with ± beside each number
-- column: metric once
-- column: block,own,number,supported hidden
-- column: * right 1
-- block: block
-- wide: title value
-- mark: supported
-- include: paper-table
SELECT block, own, number, metric, method, seeds, title, value, supported
FROM entries
ORDER BY block, own, number, place, side
-- instead:
-- include: paper-table-instead
-- refuse:
SELECT '--baseline is for the table of classifiers; with runs of other kinds in the database, choose them with --method supervised'
WHERE :baseline IS NOT NULL
