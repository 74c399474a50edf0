-- Each question's difference in each context, and one answer for all of them.
--
-- met: what all groups of a question measured in a context.
CREATE TEMP TABLE met AS
SELECT question, term.context AS context, metric, dataset, count(*) AS terms
FROM term
JOIN configuration USING (configuration)
JOIN sample USING (grp)
GROUP BY question, term.context, metric, dataset
HAVING count(*) = (SELECT count(*) FROM term AS whole WHERE whole.question = term.question AND whole.context = term.context);

-- Of the seeds that all groups have; a and b: what is subtracted and from what. Nothing is paired where that was asked for.
CREATE TEMP TABLE difference (question INTEGER, context INTEGER, metric INTEGER, dataset INTEGER, seed INTEGER, value REAL,
                              a REAL, b REAL, PRIMARY KEY (question, context, metric, dataset, seed)) WITHOUT ROWID;

INSERT INTO difference
SELECT question, context, metric, dataset, seed, iif(abs(b - a) <= 1e-10, 0.0, b - a), a, b
FROM (SELECT question, context, metric, dataset, seed, count(*) AS terms,
             sum(weight * value) FILTER (WHERE weight > 0) AS b, -sum(weight * value) FILTER (WHERE weight < 0) AS a
      FROM term
      CROSS JOIN measured USING (configuration)
      GROUP BY question, context, metric, dataset, seed)
JOIN met USING (question, context, metric, dataset, terms)
WHERE NOT (SELECT unpaired FROM request);

-- Differences that are the same on paper are the same: no deviation is made of what rounding left.
UPDATE difference
SET value = least
FROM (SELECT question AS q, context AS c, metric AS m, dataset AS d, min(value) AS least
      FROM difference
      GROUP BY question, context, metric, dataset
      HAVING max(value) > min(value) AND max(value) - min(value) <= 1e-10)
WHERE question = q AND context = c AND metric = m AND dataset = d;

-- The samples that answers are made of: differences of a context, or unpaired groups. bits: log2 of the choices of signs or labels.
CREATE TEMP TABLE cell AS
SELECT question, context, metric, dataset, 1.0 AS weight, count(*) AS n, mean(value, seed) AS mean, sd(value, seed) AS sd,
       count(*) AS bits
FROM difference
GROUP BY question, context, metric, dataset
UNION ALL
SELECT met.question, met.context, met.metric, met.dataset, weight, n, mean, sd, NULL
FROM request
JOIN met
JOIN term USING (question, context)
JOIN configuration USING (configuration)
JOIN sample ON sample.grp = configuration.grp AND sample.metric = met.metric AND sample.dataset = met.dataset
WHERE unpaired;

-- Sums of cells: of a context, and of all of a question (scope 0), where each context counts alike. sd: of one seed in each
-- context; df: its degrees of freedom (Satterthwaite); cells: as many samples of one deviation would have as many.
CREATE TEMP TABLE summed AS
SELECT question, metric, dataset, scope, count(DISTINCT context) AS contexts, sum(n) AS runs, sum(share * mean) AS difference,
       iif(count(sd) = count(*), sqrt(sum(part)), NULL) AS sd, iif(count(sd) = count(*), sqrt(sum(part / n)), NULL) AS se,
       coalesce(pow(sum(part / n), 2) / sum(pow(part / n, 2) / (n - 1)), sum(n - 1)) AS df,
       coalesce(pow(sum(part), 2) / sum(part * part), count(*)) AS cells
FROM (SELECT *, pow(share * sd, 2) AS part
      FROM (SELECT *, context AS scope, weight AS share
            FROM cell
            UNION ALL
            SELECT *, 0, weight / (dense_rank() OVER (of_all ORDER BY context) + dense_rank() OVER (of_all ORDER BY context DESC) - 1)
            FROM cell
            WINDOW of_all AS (PARTITION BY question, metric, dataset)))
GROUP BY question, metric, dataset, scope;

CREATE INDEX temp.summed_of ON summed (question, metric, dataset, scope);

CREATE TEMP TABLE detail AS
SELECT met.question AS question, met.context AS context, met.metric AS metric, met.dataset AS dataset, coalesce(runs, 0) AS runs,
       difference, sd, difference - t_quantile(0.95, df) * se AS low, difference + t_quantile(0.95, df) * se AS high, median, effect, p,
       p_wilcoxon, t_p(difference / se, df) AS p_t, r
FROM met
LEFT JOIN summed ON summed.question = met.question AND summed.metric = met.metric AND summed.dataset = met.dataset
                    AND scope = met.context
LEFT JOIN (SELECT question, context, metric, dataset, hodges_lehmann(value) AS median, hedges_g(value, seed) AS effect,
                  permutation_p(value, seed, draw_seed) AS p, wilcoxon_p(value) AS p_wilcoxon,
                  iif(factors, NULL, correlation(a, b)) AS r
           FROM request
           JOIN difference
           GROUP BY question, context, metric, dataset) AS of ON of.question = met.question AND of.context = met.context
                                                              AND of.metric = met.metric AND of.dataset = met.dataset
ORDER BY met.question, met.metric, met.dataset, met.context;

CREATE INDEX temp.detail_of ON detail (question, metric, dataset);

-- Of several contexts: one sign for each seed of each, and one for each seed in all of them. Differences are scaled so that their
-- sum is that of the contexts' means.
CREATE TEMP TABLE stratified AS
WITH scaled AS MATERIALIZED (
    SELECT question, metric, dataset, context, seed, value * runs / contexts / n AS value,
           a - avg(a) OVER of_context AS a, b - avg(b) OVER of_context AS b
    FROM summed
    JOIN difference USING (question, metric, dataset)
    JOIN cell USING (question, metric, dataset, context)
    WHERE scope = 0 AND contexts > 1
    WINDOW of_context AS (PARTITION BY question, metric, dataset, context)
)
SELECT *
FROM (SELECT question, metric, dataset, permutation_p(value, seed, draw_seed) AS p,
             iif(factors, NULL, correlation(a, b)) AS r
      FROM request
      JOIN scaled
      GROUP BY question, metric, dataset)
JOIN (SELECT question, metric, dataset, permutation_p(value, seed, draw_seed) AS p_seeds
      FROM request
      JOIN (SELECT question, metric, dataset, seed, sum(value) AS value FROM scaled GROUP BY question, metric, dataset, seed)
      GROUP BY question, metric, dataset) USING (question, metric, dataset);

CREATE TEMP TABLE relabelled AS
SELECT question, metric, dataset, unpaired_p(value, met.context, weight > 0, draw_seed) AS p, count(DISTINCT seed) AS seeds
FROM request
JOIN met
JOIN term USING (question, context)
CROSS JOIN measured USING (configuration, metric, dataset)
WHERE unpaired
GROUP BY question, metric, dataset;

-- bits: log2 of the choices of signs, or of labels (one less where the sides differ, because no choice is then another's mirror).
CREATE TEMP TABLE chosen_from AS
SELECT question, metric, dataset, count(*) AS bits, count(DISTINCT seed) AS seeds FROM difference GROUP BY question, metric, dataset
UNION ALL
SELECT question, metric, dataset, sum(bits) + max(apart), NULL
FROM (SELECT question, metric, dataset, context, log2_choices(min(n), max(n)) AS bits, min(n) <> max(n) AS apart
      FROM cell
      WHERE (SELECT unpaired FROM request)
      GROUP BY question, metric, dataset, context)
GROUP BY question, metric, dataset;

-- The spread over datasets, too: seeds and tasks are drawn. Only where metrics are means over tasks.
CREATE TEMP TABLE over_tasks AS
SELECT question, metric, bootstrap_tasks_low(value, seed, dataset, draw_seed) AS low,
       bootstrap_tasks_high(value, seed, dataset, draw_seed) AS high
FROM request
JOIN (SELECT question, metric, dataset, seed, avg(value) AS value
      FROM difference
      WHERE dataset > 0
      GROUP BY question, metric, dataset, seed)
WHERE only_dataset IS NULL AND NOT (SELECT max(accumulates) FROM compared)
GROUP BY question, metric
HAVING count(DISTINCT dataset) > 1;

-- An answer per question, metric and dataset, before corrections. tier: 0 for what is primary, 1 for the rest; least: the least p;
-- p_equal: of a difference at or beyond the margin, the larger of two one-sided tests (Schuirmann 1987).
CREATE TEMP TABLE tested AS
SELECT one.question AS question, one.metric AS metric, one.dataset AS dataset, one.dataset > 0 AS of_datasets,
       main IS NOT NULL AND metric.name <> main AS tier, coalesce(contexts, 0) AS contexts,
       coalesce(relabelled.seeds, chosen_from.seeds, 0) AS seeds, coalesce(one.runs, 0) AS runs, difference, sd, se, df, cells,
       t_quantile(0.95, df) * se AS half, t_quantile(0.9, df) * se AS half_90, one.above AS above, one.below AS below,
       iif(contexts = 1, one.median, NULL) AS median, iif(contexts = 1, one.effect, NULL) AS effect,
       iif(unpaired, relabelled.p, iif(contexts = 1, one.p, stratified.p)) AS p, bits, bits > iif(unpaired, 22, 40) AS drawn,
       iif(contexts > 1, p_seeds, iif(unpaired, relabelled.p, one.p)) AS p_seeds,
       iif(contexts = 1, one.p_wilcoxon, NULL) AS p_wilcoxon, t_p(difference / se, df) AS p_t,
       iif(contexts = 1, one.r, stratified.r) AS r, over_tasks.low AS tasks_low, over_tasks.high AS tasks_high,
       CASE WHEN margin > abs(difference) THEN t_p((margin - abs(difference)) / se, df) / 2
            ELSE 1 - t_p((margin - abs(difference)) / se, df) / 2 END AS p_equal
FROM request
JOIN (SELECT question, metric, dataset, sum(detail.runs) AS runs, sum(difference > 0) AS above, sum(difference < 0) AS below,
             max(median) AS median, max(effect) AS effect, max(p) AS p, max(p_wilcoxon) AS p_wilcoxon, max(r) AS r
      FROM detail
      GROUP BY question, metric, dataset) AS one
JOIN metric ON metric.place = one.metric
LEFT JOIN summed ON summed.question = one.question AND summed.metric = one.metric AND summed.dataset = one.dataset AND scope = 0
LEFT JOIN stratified ON stratified.question = one.question AND stratified.metric = one.metric AND stratified.dataset = one.dataset
LEFT JOIN relabelled ON relabelled.question = one.question AND relabelled.metric = one.metric AND relabelled.dataset = one.dataset
LEFT JOIN chosen_from ON chosen_from.question = one.question AND chosen_from.metric = one.metric AND chosen_from.dataset = one.dataset
LEFT JOIN over_tasks ON over_tasks.question = one.question AND over_tasks.metric = one.metric AND one.dataset = 0
ORDER BY one.question, one.metric, one.dataset;

-- Holm's correction over the questions and metrics asked for; datasets are a family of their own. What is secondary is tested when
-- everything primary is supported, so that its p is at least the largest of those (serial gatekeeping: Westfall and Krishen 2001).
CREATE TEMP TABLE corrected AS
SELECT place, family,
       iif(p IS NULL, NULL, max(holm, iif(tier, coalesce(max(iif(tier, NULL, coalesce(holm, 1.0))) OVER (PARTITION BY of_datasets), 0.0), 0.0))) AS p_holm,
       iif(p_seeds IS NULL, NULL, holm_seeds) AS seeds_holm, iif(p_equal IS NULL, NULL, holm_equal) AS equal_holm
FROM (SELECT *, max(min(1.0, (family + 1 - rank) * p)) OVER (of ORDER BY rank) AS holm,
             max(min(1.0, (family + 1 - rank_seeds) * p_seeds)) OVER (of ORDER BY rank_seeds) AS holm_seeds,
             max(min(1.0, (count_equal + 1 - rank_equal) * p_equal)) OVER (of ORDER BY rank_equal) AS holm_equal
      FROM (SELECT rowid AS place, *, count(p) OVER same AS family, count(p_equal) OVER same AS count_equal,
                   row_number() OVER (same ORDER BY p IS NULL, p, rowid) AS rank,
                   row_number() OVER (same ORDER BY p_seeds IS NULL, p_seeds, rowid) AS rank_seeds,
                   row_number() OVER (same ORDER BY p_equal IS NULL, p_equal, rowid) AS rank_equal
            FROM tested
            WINDOW same AS (PARTITION BY of_datasets, tier))
      WINDOW of AS (PARTITION BY of_datasets, tier));

-- low and high stay where the difference can be: `reach` is that of two values with the question's weights.
CREATE TEMP TABLE pair AS
SELECT tested.rowid AS place, question, metric, dataset, tier, family, contexts, seeds, runs, difference, sd, df,
       max(-reach * (100 - floor), difference - half) AS low, min(reach * (100 - floor), difference + half) AS high,
       iif(margin > 0, max(-reach * (100 - floor), difference - half_90), NULL) AS low90,
       iif(margin > 0, min(reach * (100 - floor), difference + half_90), NULL) AS high90, tasks_low, tasks_high, above, below, median, effect, p, drawn,
       max(least_p(bits), iif(drawn, 1e-5, 0)) AS least, iif(contexts > 1, p_seeds, NULL) AS p_seeds, p_holm, seeds_holm, p_equal,
       equal_holm, p_wilcoxon, p_t, r, CAST(least_seeds(1, max(contexts, 1), unpaired) AS INTEGER) AS seeds_alone,
       CAST(least_seeds(family, max(contexts, 1), unpaired) AS INTEGER) AS seeds_together,
       iif(detect > 0, CAST(seeds_needed(detect / sd, cells, family, contexts, unpaired) AS INTEGER), NULL) AS seeds_needed,
       iif(detect > 0, CAST(seeds_needed(detect / sd_low(sd, df), cells, family, contexts, unpaired) AS INTEGER), NULL) AS seeds_low,
       iif(detect > 0, CAST(seeds_needed(detect / sd_high(sd, df), cells, family, contexts, unpaired) AS INTEGER), NULL) AS seeds_high,
       CASE WHEN p_holm > 0.05 OR p_holm IS NULL THEN iif(equal_holm <= 0.05, 'equal', 'undecided')
            ELSE iif((difference > 0) <> lower, 'better', 'worse') || iif(seeds_holm > 0.05, ' if contexts are independent', '')
                 || iif(equal_holm <= 0.05, ', equal within the margin', '') END AS verdict
FROM request
JOIN tested
JOIN corrected ON corrected.place = tested.rowid
JOIN metric ON metric.place = metric
JOIN (SELECT question, max(reach) AS reach
      FROM (SELECT question, context, sum(abs(weight)) / 2 AS reach FROM term GROUP BY question, context)
      GROUP BY question) USING (question)
ORDER BY tested.rowid;

INSERT INTO note (note)
SELECT 'runs are paired by seed, which fixes the first weights and the order of images on both sides'
       || iif(count(r) > 0, format('; over seeds their results correlate by %.2f on average (r)', avg(r)), '')
       || '; --unpaired takes them as independent, to be chosen before the results are known'
FROM pair
JOIN request
WHERE NOT unpaired AND NOT factors AND runs > 0 AND dataset = coalesce((SELECT min(dataset) FROM pair), 0)
HAVING count(*) > 0;

INSERT INTO note (note)
SELECT 'where there are too many choices of signs or labels to count, 100,000 are drawn by Philox with seed ' || draw_seed
FROM request
WHERE EXISTS (SELECT 1 FROM pair WHERE drawn);
