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
          AND c.run IN (SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear')
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
