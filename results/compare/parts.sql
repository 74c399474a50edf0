-- The answer, as views (compare.h). Datasets are named where any are asked for.
CREATE TEMP VIEW detailed AS SELECT max(dataset) > 0 AS datasets FROM sample;

CREATE TEMP VIEW answer_contexts AS
SELECT DISTINCT number AS context, context.name AS settings
FROM context
JOIN shown USING (context)
WHERE (SELECT max(number) FROM shown) > 1
ORDER BY number;

CREATE TEMP VIEW answer_groups AS
SELECT iif((SELECT max(number) FROM shown) > 1, number, NULL) AS context, shown.name AS other, metric.name AS metric, iif(datasets, coalesce(dataset.name, 'mean'), NULL) AS dataset,
       n AS seeds, mean, sd, max(floor, mean - half) AS low, min(ceiling, mean + half) AS high,
       number || ' ' || sample.metric || ' ' || sample.dataset AS block
FROM sample
JOIN shown USING (grp)
CROSS JOIN detailed
JOIN metric ON metric.place = sample.metric
LEFT JOIN dataset ON dataset.place = sample.dataset
ORDER BY number, sample.metric, sample.dataset, grp;

CREATE TEMP VIEW answer_pairs AS
SELECT factor, question.baseline AS baseline, question.other AS other, metric.name AS metric, iif(datasets, coalesce(dataset.name, 'mean'), NULL) AS dataset,
       iif((SELECT max(number) FROM shown) > 1, contexts, NULL) AS contexts, seeds,
       iif((SELECT unpaired OR EXISTS (SELECT 1 FROM pair WHERE contexts > 1) FROM request), runs, NULL) AS runs, difference, sd, low, high,
       low90, high90, tasks_low, tasks_high, iif(contexts > 1, above, NULL) AS above, iif(contexts > 1, below, NULL) AS below, median,
       effect, p, p_seeds, p_holm, equal_holm AS p_equal, p_wilcoxon, p_t, r, seeds_needed, seeds_low, seeds_high, verdict
FROM pair
CROSS JOIN detailed
JOIN question USING (question)
JOIN metric ON metric.place = pair.metric
LEFT JOIN dataset ON dataset.place = pair.dataset
ORDER BY pair.place;

CREATE TEMP VIEW answer_details AS
SELECT number AS context, factor, question.baseline AS baseline, question.other AS other, metric.name AS metric,
       iif(datasets, coalesce(dataset.name, 'mean'), NULL) AS dataset, runs, difference, sd, low, high, median, effect, p, p_wilcoxon, p_t, r
FROM detail
CROSS JOIN detailed
JOIN question USING (question)
JOIN (SELECT DISTINCT context, number FROM shown) USING (context)
JOIN metric ON metric.place = detail.metric
LEFT JOIN dataset ON dataset.place = detail.dataset
ORDER BY detail.rowid;

CREATE TEMP VIEW answer_images AS
SELECT iif((SELECT max(number) FROM shown) > 1, b.number, NULL) AS context, a.name AS baseline, b.name AS other, iif(datasets, coalesce(dataset.name, 'mean'), NULL) AS dataset, seeds,
       images, difference, low, high, router_a AS router_errors_baseline, router_b AS router_errors,
       class_a AS class_errors_baseline, class_b AS class_errors
FROM imaged
CROSS JOIN detailed
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
LEFT JOIN dataset ON dataset.place = imaged.dataset
ORDER BY imaged.rowid;

CREATE TEMP VIEW answer_discordance AS
SELECT iif((SELECT max(number) FROM shown) > 1, b.number, NULL) AS context, a.name AS baseline, b.name AS other, dataset.name AS dataset, seed, images,
       only_a AS only_baseline, only_b AS only_other, p AS p_mcnemar, p_holm
FROM discordance
JOIN shown AS a ON a.grp = baseline
JOIN shown AS b ON b.grp = other
JOIN dataset ON dataset.place = discordance.dataset
ORDER BY discordance.rowid;

CREATE TEMP VIEW answer_words AS
SELECT factor, question.baseline AS baseline, question.other AS other, metric.name AS metric, iif(datasets, coalesce(dataset.name, 'mean'), NULL) AS dataset,
       words
FROM pair
CROSS JOIN detailed
JOIN words USING (place)
JOIN question USING (question)
JOIN metric ON metric.place = pair.metric
LEFT JOIN dataset ON dataset.place = pair.dataset
ORDER BY pair.place;

CREATE TEMP VIEW answer_notes AS SELECT note FROM note ORDER BY place;
