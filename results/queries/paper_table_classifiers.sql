-- The table of papers that train classifiers: accuracy on each dataset, means over seeds of finished runs, and the
-- difference from the baseline (?14; null: the row Dense) over common seeds. Follows the CTE `chosen`; ?11: a dataset
-- or null, ?12: with published numbers, for the datasets and the training of the runs. A configuration is named by its
-- row, or its method and policy, and, where names coincide, by its digest. The difference is empty where several
-- configurations of a suite and dataset have the baseline's name, because the name is ambiguous. Columns: as
-- query/classifiers.c expects.
, own AS MATERIALIZED (
    SELECT c.run AS run, seed, suite, min(c.run) OVER (PARTITION BY suite_hash) AS number, substr(suite_hash, 1, 8) AS digest,
           t.name AS dataset, test_digest, test_images, model = 'scratch' AS scratch, model = 'mini' AS mini,
           trainable_parameters AS parameters, 100.0 * correct / images AS accuracy,
           coalesce(s.value, method || iif(policy = 'none', '', ', ' || policy)) AS label
    FROM chosen AS c
    JOIN tasks AS t ON t.run = c.run AND t.task = 0
    JOIN evaluations AS e ON e.run = c.run AND e.task = 0 AND e.after_task = 0
    LEFT JOIN settings AS s ON s.run = c.run AND s.key = 'run.row'
    WHERE status = 'finished' AND (?11 IS NULL OR t.name = ?11)
          AND c.run IN (SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear')
), baselines AS (
    SELECT suite, dataset, test_digest, number
    FROM own
    WHERE label = coalesce(?14, 'Dense')
    GROUP BY suite, dataset, test_digest
    HAVING min(number) = max(number)
), differences AS (
    SELECT o.number AS number, count(*) AS pairs, avg(o.accuracy - d.accuracy) AS difference,
           (avg((o.accuracy - d.accuracy) * (o.accuracy - d.accuracy))
            - avg(o.accuracy - d.accuracy) * avg(o.accuracy - d.accuracy)) * count(*) / nullif(count(*) - 1, 0) AS variance
    FROM own AS o
    JOIN baselines AS b USING (suite, dataset, test_digest)
    JOIN own AS d ON d.number = b.number AND d.seed = o.seed
    WHERE o.number <> b.number
    GROUP BY o.number
), means AS (
    SELECT suite, dataset, number, max(scratch) AS scratch, max(label) AS label, max(digest) AS digest,
           ?12 AND (max(mini) OR NOT EXISTS (
               SELECT 1
               FROM published_images AS p
               WHERE p.dataset = own.dataset AND own.test_images BETWEEN 0.9 * p.images AND p.images)) AS other,
           count(*) AS seeds, max(parameters) AS parameters, avg(accuracy) AS accuracy,
           (avg(accuracy * accuracy) - avg(accuracy) * avg(accuracy)) * count(*) / nullif(count(*) - 1, 0) AS variance
    FROM own
    GROUP BY number
), lines AS (
    SELECT suite, dataset, 0 AS printed, number,
           label || iif(other, ' (other data than in papers)', '')
           || iif(count(*) OVER (PARTITION BY suite, dataset, label) > 1, ', ' || digest, '') AS classifier,
           seeds, parameters, accuracy, means.variance AS accuracy_variance, pairs, difference,
           differences.variance AS difference_variance
    FROM means
    LEFT JOIN differences USING (number)
    UNION ALL
    SELECT suite, dataset, 1, row, method || ', published (' || source || ')', NULL, NULL, accuracy, NULL, NULL, difference, NULL
    FROM (SELECT DISTINCT suite, dataset, scratch FROM means)
    JOIN published_classifiers USING (dataset, scratch)
    WHERE ?12
)
SELECT suite, dataset, classifier, seeds, parameters AS trained_parameters, accuracy, accuracy_variance AS "accuracy ±", pairs, difference,
       difference_variance AS "difference ±", NULL AS direction
FROM lines
ORDER BY min(number) FILTER (WHERE printed = 0) OVER (PARTITION BY suite), suite,
         min(number) FILTER (WHERE printed = 0) OVER (PARTITION BY suite, dataset), dataset, printed, number
