-- The answer, as views (compare.h). Datasets are named where any are asked for.
CREATE TEMP VIEW detailed AS SELECT max(dataset) > 0 AS datasets FROM sample;

CREATE TEMP VIEW answer_contexts AS
SELECT context, name AS settings FROM context WHERE (SELECT max(context) FROM configuration) > 1 ORDER BY context;

CREATE TEMP VIEW answer_groups AS
SELECT iif((SELECT max(context) FROM configuration) > 1, context, NULL) AS context, configuration.name AS other, metric.name AS metric,
       iif(datasets, coalesce(dataset.name, 'mean'), NULL) AS dataset, n AS seeds, mean, sd, max(floor, mean - half) AS low,
       min(ceiling, mean + half) AS high, context || ' ' || sample.metric || ' ' || sample.dataset AS block
FROM sample
JOIN configuration USING (grp)
CROSS JOIN detailed
JOIN metric ON metric.place = sample.metric
LEFT JOIN dataset ON dataset.place = sample.dataset
ORDER BY context, sample.metric, sample.dataset, grp;

CREATE TEMP VIEW answer_pairs AS
SELECT factor, baseline, other, metric_name AS metric, iif(datasets, coalesce(dataset_name, 'mean'), NULL) AS dataset,
       iif((SELECT max(context) FROM configuration) > 1, contexts, NULL) AS contexts, seeds,
       iif((SELECT unpaired OR EXISTS (SELECT 1 FROM pair WHERE contexts > 1) FROM request), runs, NULL) AS runs, difference, sd, low, high,
       low90, high90, tasks_low, tasks_high, iif(contexts > 1, above, NULL) AS above, iif(contexts > 1, below, NULL) AS below, median,
       effect, p, p_seeds, p_holm, equal_holm AS p_equal, p_wilcoxon, p_t, r, seeds_needed, seeds_low, seeds_high, verdict
FROM answer
CROSS JOIN detailed
ORDER BY place;

CREATE TEMP VIEW answer_details AS
SELECT context, factor, question.baseline AS baseline, question.other AS other, metric.name AS metric,
       iif(datasets, coalesce(dataset.name, 'mean'), NULL) AS dataset, runs, difference, sd, low, high, median, effect, p, p_wilcoxon, p_t, r
FROM detail
CROSS JOIN detailed
JOIN question USING (question)
JOIN metric ON metric.place = detail.metric
LEFT JOIN dataset ON dataset.place = detail.dataset
ORDER BY detail.rowid;

CREATE TEMP VIEW answer_images AS
SELECT iif((SELECT max(context) FROM configuration) > 1, b.context, NULL) AS context, a.name AS baseline, b.name AS other,
       iif(datasets, coalesce(dataset.name, 'mean'), NULL) AS dataset, seeds, images, difference, low, high,
       router_a AS router_errors_baseline, router_b AS router_errors, class_a AS class_errors_baseline, class_b AS class_errors
FROM imaged
CROSS JOIN detailed
JOIN configuration AS a ON a.grp = baseline
JOIN configuration AS b ON b.grp = other
LEFT JOIN dataset ON dataset.place = imaged.dataset
ORDER BY imaged.rowid;

CREATE TEMP VIEW answer_discordance AS
SELECT iif((SELECT max(context) FROM configuration) > 1, b.context, NULL) AS context, a.name AS baseline, b.name AS other,
       dataset.name AS dataset, seed, images, only_a AS only_baseline, only_b AS only_other, p AS p_mcnemar, p_holm
FROM discordance
JOIN configuration AS a ON a.grp = baseline
JOIN configuration AS b ON b.grp = other
JOIN dataset ON dataset.place = discordance.dataset
ORDER BY discordance.rowid;

CREATE TEMP VIEW answer_words AS
SELECT factor, baseline, other, metric_name AS metric, iif(datasets, coalesce(dataset_name, 'mean'), NULL) AS dataset, words
FROM answer
CROSS JOIN detailed
JOIN words USING (place)
ORDER BY place;

CREATE TEMP VIEW answer_notes AS SELECT note FROM note ORDER BY place;
