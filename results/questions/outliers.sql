-- title: runs whose Transfer, Average or Last no seed of their configuration should have: worth a look before they are pooled
-- empty: no seed stands out
-- column: value,others 1
-- column: p 4
-- column: name of-dataset

-- Grubbs' test: each run against the others of its configuration (Student's t of the deleted residual), p times the seeds. The others
-- vary at least as numbers do that are rounded to an image of any task, or two that happen to be equal would make any third stand out.
WITH
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
