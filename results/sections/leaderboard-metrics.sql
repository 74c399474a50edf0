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
