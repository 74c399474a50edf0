-- The answer, as views (compare.h).
CREATE TEMP VIEW answer_contexts AS
SELECT DISTINCT number AS context, context.name AS settings
FROM context
JOIN shown USING (context)
WHERE (SELECT max(number) FROM shown) > 1
ORDER BY number;

CREATE TEMP VIEW answer_groups AS
SELECT number AS context, shown.name AS other, metric.name AS metric, coalesce(dataset.name, 'mean') AS dataset,
       n AS seeds, mean, sd, max(floor, mean - half) AS low, min(100.0, mean + half) AS high
FROM sample
JOIN shown USING (grp)
JOIN metric ON metric.place = sample.metric
LEFT JOIN dataset ON dataset.place = sample.dataset
ORDER BY number, sample.metric, sample.dataset, grp;

CREATE TEMP VIEW answer_pairs AS
SELECT b.number AS context, a.name AS baseline, b.name AS other, metric.name AS metric,
       coalesce(dataset.name, 'mean') AS dataset, n AS seeds, difference, sd, low, high, median, effect, p, p_holm,
       p_wilcoxon, p_t, seeds_needed
FROM pair
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
JOIN metric ON metric.place = pair.metric
LEFT JOIN dataset ON dataset.place = pair.dataset
ORDER BY pair.place;

CREATE TEMP VIEW answer_images AS
SELECT b.number AS context, a.name AS baseline, b.name AS other, coalesce(dataset.name, 'mean') AS dataset, seeds,
       images, difference, low, high, router_a AS router_errors_baseline, router_b AS router_errors,
       class_a AS class_errors_baseline, class_b AS class_errors
FROM imaged
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
LEFT JOIN dataset ON dataset.place = imaged.dataset
ORDER BY imaged.rowid;

CREATE TEMP VIEW answer_discordance AS
SELECT b.number AS context, a.name AS baseline, b.name AS other, dataset.name AS dataset, seed, images,
       only_a AS only_baseline, only_b AS only_other, p AS p_mcnemar, p_holm
FROM discordance
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
JOIN dataset ON dataset.place = discordance.dataset
ORDER BY discordance.rowid;

CREATE TEMP VIEW answer_words AS
SELECT b.number AS context, a.name AS baseline, b.name AS other, metric.name AS metric,
       coalesce(dataset.name, 'mean') AS dataset, words
FROM pair
JOIN words USING (place)
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
JOIN metric ON metric.place = pair.metric
LEFT JOIN dataset ON dataset.place = pair.dataset
ORDER BY pair.place;

CREATE TEMP VIEW answer_overview AS
SELECT baseline, other, name AS metric, contexts, difference, least, most, above, supported_above, below, supported_below
FROM overview
JOIN metric ON metric.place = metric
ORDER BY overview.place;

CREATE TEMP VIEW answer_notes AS SELECT note FROM note ORDER BY place;
