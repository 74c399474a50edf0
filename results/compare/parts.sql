SELECT DISTINCT number AS context, context.name AS settings
FROM context
JOIN shown USING (context)
WHERE (SELECT max(number) FROM shown) > 1
ORDER BY number;
SELECT number AS "context?", shown.name AS "by", metric.name AS metric, coalesce(dataset.name, 'mean') AS "dataset?",
       n AS seeds, mean, sd, mean - half AS low, mean + half AS high
FROM sample
JOIN shown USING (grp)
JOIN metric ON metric.place = sample.metric
LEFT JOIN dataset ON dataset.place = sample.dataset
ORDER BY number, sample.metric, sample.dataset, grp;
SELECT b.number AS "context?", a.name AS baseline, b.name AS "by", metric.name AS metric,
       coalesce(dataset.name, 'mean') AS "dataset?", n AS seeds, difference, sd, low, high, median, effect, p, p_holm,
       p_wilcoxon, p_t, seeds_needed AS "seeds_needed?"
FROM pair
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
JOIN metric ON metric.place = pair.metric
LEFT JOIN dataset ON dataset.place = pair.dataset
ORDER BY pair.place;
SELECT b.number AS "context?", a.name AS baseline, b.name AS "by", coalesce(dataset.name, 'mean') AS dataset, seeds,
       images, difference, low, high, router_a AS "router_errors_baseline?", router_b AS "router_errors?",
       class_a AS "class_errors_baseline?", class_b AS "class_errors?"
FROM imaged
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
LEFT JOIN dataset ON dataset.place = imaged.dataset
ORDER BY imaged.rowid;
SELECT b.number AS "context?", a.name AS baseline, b.name AS "by", dataset.name AS dataset, seed, images,
       only_a AS only_baseline, only_b AS only_other, p AS p_mcnemar, p_holm
FROM discordance
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
JOIN dataset ON dataset.place = discordance.dataset
ORDER BY discordance.rowid;
SELECT b.number AS "context?", a.name AS baseline, b.name AS "by", metric.name AS metric,
       coalesce(dataset.name, 'mean') AS "dataset?", words
FROM pair
JOIN words USING (place)
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
JOIN metric ON metric.place = pair.metric
LEFT JOIN dataset ON dataset.place = pair.dataset
ORDER BY pair.place;
SELECT baseline, other AS "by", name AS metric, contexts, difference, least, most, above, supported_above, below,
       supported_below
FROM overview
JOIN metric ON metric.place = metric
ORDER BY overview.place;
SELECT note FROM note ORDER BY place;
