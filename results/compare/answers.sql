-- The stages of a comparison that answer.
-- === answers
-- Each question's difference in each context, and one answer for all of them.
--
-- met: what all groups of a question measured in a context.
CREATE TEMP TABLE met AS
SELECT question, term.context AS context, metric, dataset
FROM term
JOIN configuration USING (configuration)
JOIN sample USING (grp)
GROUP BY question, term.context, metric, dataset
HAVING count(*) = (SELECT count(*) FROM term AS whole WHERE whole.question = term.question AND whole.context = term.context);

-- Of the seeds that all groups have; a and b: what is subtracted and from what. Nothing is paired where that was asked for.
CREATE TEMP TABLE difference (question INTEGER, context INTEGER, metric INTEGER, dataset INTEGER, seed INTEGER, value REAL,
                              a REAL, b REAL, PRIMARY KEY (question, context, metric, dataset, seed)) WITHOUT ROWID;

INSERT INTO difference
SELECT question, context, a.metric, a.dataset, a.seed, b.value - a.value, a.value, b.value
FROM two
CROSS JOIN measured AS a ON a.configuration = configuration_a
CROSS JOIN measured AS b ON b.configuration = configuration_b AND b.metric = a.metric AND b.dataset = a.dataset
                            AND b.seed = a.seed
WHERE NOT (SELECT unpaired FROM request);

INSERT INTO difference
SELECT question, context, metric, dataset, seed, sum(weight * value), -sum(weight * value) FILTER (WHERE weight < 0),
       sum(weight * value) FILTER (WHERE weight > 0)
FROM term
CROSS JOIN measured USING (configuration)
WHERE (SELECT factors FROM request)
GROUP BY question, context, metric, dataset, seed
HAVING count(*) = (SELECT count(*) FROM term AS whole WHERE whole.question = term.question AND whole.context = term.context);

UPDATE difference SET value = 0 WHERE abs(value) <= 1e-10;

-- Differences that are the same on paper are the same: no deviation is made of what rounding left.
UPDATE difference
SET value = least
FROM (SELECT question AS q, context AS c, metric AS m, dataset AS d, min(value) AS least
      FROM difference
      GROUP BY question, context, metric, dataset
      HAVING max(value) > min(value) AND max(value) - min(value) <= 1e-10)
WHERE question = q AND context = c AND metric = m AND dataset = d;

-- The samples that answers are made of: differences of a context, or groups that are not paired. Each test statistic is an
-- aggregate.
CREATE TEMP TABLE cell AS
SELECT question, context, metric, dataset, 1.0 AS weight, count(*) AS n, mean(value, seed) AS mean, sd(value, seed) AS sd,
       hodges_lehmann(value) AS median, hedges_g(value, seed) AS effect, permutation_p(value, seed, (SELECT draw_seed FROM request)) AS p,
       wilcoxon_p(value) AS p_wilcoxon, iif((SELECT factors FROM request), NULL, correlation(a, b)) AS r
FROM difference -- alone, so that its order is that of the groups
GROUP BY question, context, metric, dataset
UNION ALL
SELECT met.question, met.context, met.metric, met.dataset, weight, n, mean, sd, NULL, NULL, NULL, NULL, NULL
FROM request
JOIN met
JOIN term USING (question, context)
JOIN configuration USING (configuration)
JOIN sample ON sample.grp = configuration.grp AND sample.metric = met.metric AND sample.dataset = met.dataset
WHERE unpaired;

-- Questions whose contexts are details.
CREATE TEMP TABLE several AS
SELECT question FROM term GROUP BY question HAVING min(context) < max(context);

-- Sums of cells: of a context, and of all of a question (scope 0), where each context counts alike. sd: of one seed in each
-- context; df: its degrees of freedom (Satterthwaite); cells: as many samples of one deviation would have as many. What is said of
-- one cell stays.
CREATE TEMP TABLE summed AS
SELECT question, metric, dataset, scope, count(DISTINCT context) AS contexts, sum(n) AS runs,
       sum(weight * mean) / count(DISTINCT context) AS difference,
       iif(count(sd) = count(*), sqrt(sum(part)) / count(DISTINCT context), NULL) AS sd,
       iif(count(sd) = count(*), sqrt(sum(part / n)) / count(DISTINCT context), NULL) AS se,
       iif(count(*) = 1, sum(n - 1), coalesce(pow(sum(part / n), 2) / sum(pow(part / n, 2) / (n - 1)), sum(n - 1))) AS df,
       coalesce(pow(sum(part), 2) / sum(part * part), count(*)) AS cells,
       iif(count(*) = 1, max(median), NULL) AS median, iif(count(*) = 1, max(effect), NULL) AS effect,
       iif(count(*) = 1, max(p), NULL) AS p, iif(count(*) = 1, max(p_wilcoxon), NULL) AS p_wilcoxon,
       iif(count(*) = 1, max(r), NULL) AS r
FROM (SELECT *, pow(weight * sd, 2) AS part
      FROM (SELECT *, CAST(0 AS INTEGER) AS scope FROM cell UNION ALL SELECT *, context FROM cell WHERE question IN (SELECT question FROM several)))
GROUP BY question, metric, dataset, scope;

CREATE UNIQUE INDEX temp.summed_of ON summed (question, metric, dataset, scope);

CREATE TEMP TABLE student AS
SELECT df, t_quantile(0.95, df) AS t, t_quantile(0.9, df) AS t_90 FROM (SELECT DISTINCT df FROM summed);

CREATE UNIQUE INDEX temp.student_df ON student (df);

CREATE TEMP TABLE detail AS
SELECT met.question AS question, met.context AS context, met.metric AS metric, met.dataset AS dataset, coalesce(runs, 0) AS runs,
       difference, sd, difference - t * se AS low, difference + t * se AS high, median, effect, p, p_wilcoxon,
       t_p(difference / se, df) AS p_t, r
FROM met
LEFT JOIN summed ON summed.question = met.question AND summed.metric = met.metric AND summed.dataset = met.dataset
                    AND scope = met.context
LEFT JOIN student USING (df)
WHERE met.question IN (SELECT question FROM several)
ORDER BY met.question, met.metric, met.dataset, met.context;

-- Of several contexts: one sign for each seed of each, and one for each seed in all of them. Differences are scaled so that their
-- sum is that of the contexts' means.
CREATE TEMP TABLE stratified AS
WITH scaled AS MATERIALIZED (
    SELECT question, metric, dataset, context, seed, value * runs / contexts / n AS value,
           a - avg(a) OVER of_context AS a, b - avg(b) OVER of_context AS b
    FROM difference
    CROSS JOIN summed USING (question, metric, dataset)
    CROSS JOIN cell USING (question, metric, dataset, context)
    WHERE scope = 0 AND contexts > 1
    WINDOW of_context AS (PARTITION BY question, metric, dataset, context)
)
SELECT *
FROM (SELECT question, metric, dataset, permutation_p(value, seed, draw_seed) AS p, count(DISTINCT seed) AS seeds,
             iif(factors, NULL, correlation(a, b)) AS r
      FROM request
      JOIN scaled
      GROUP BY question, metric, dataset)
JOIN (SELECT question, metric, dataset, permutation_p(value, seed, draw_seed) AS p_seeds
      FROM request
      JOIN (SELECT question, metric, dataset, seed, sum(value) AS value FROM scaled GROUP BY question, metric, dataset, seed)
      GROUP BY question, metric, dataset) USING (question, metric, dataset);

CREATE TEMP TABLE directions AS
SELECT question, metric, dataset, sum(difference > 0) AS above, sum(difference < 0) AS below
FROM detail
GROUP BY question, metric, dataset
HAVING count(difference) > 1;

-- Labels that change places within contexts. bits: log2 of their choices, and one more where sides differ, because no choice is
-- then another's mirror.
CREATE TEMP TABLE relabelled AS
SELECT *
FROM (SELECT question, metric, dataset, unpaired_p(value, met.context, weight > 0, draw_seed) AS p, count(DISTINCT seed) AS seeds
      FROM request
      JOIN met
      JOIN term USING (question, context)
      CROSS JOIN measured USING (configuration, metric, dataset)
      WHERE unpaired
      GROUP BY question, metric, dataset)
JOIN (SELECT question, metric, dataset, sum(bits) + max(apart) AS bits
      FROM (SELECT question, metric, dataset, context, log2_choices(min(n), max(n)) AS bits, min(n) <> max(n) AS apart
            FROM cell
            GROUP BY question, metric, dataset, context)
      WHERE (SELECT unpaired FROM request)
      GROUP BY question, metric, dataset) USING (question, metric, dataset);

-- The spread over datasets, too: seeds and tasks are drawn. Only where metrics are means over tasks,
-- and each seed has each context.
CREATE TEMP TABLE over_tasks AS
SELECT question, metric, bootstrap_tasks_low(value, seed, dataset, draw_seed) AS low,
       bootstrap_tasks_high(value, seed, dataset, draw_seed) AS high
FROM request
JOIN (SELECT question, metric, dataset, seed, avg(value) AS value, count(*) AS contexts
      FROM difference
      WHERE dataset > 0
      GROUP BY question, metric, dataset, seed)
WHERE only_dataset IS NULL AND NOT (SELECT max(accumulates) FROM compared)
GROUP BY question, metric
HAVING count(DISTINCT dataset) > 1 AND min(contexts) = max(contexts);

-- An answer per question, metric and dataset, before corrections. tier: 0 for what is primary, 1 for the rest; p_equal: of a
-- difference at or beyond the margin, the larger of two one-sided tests (Schuirmann 1987).
CREATE TEMP TABLE tested AS
SELECT one.question AS question, one.metric AS metric, one.dataset AS dataset, one.dataset > 0 AS of_datasets,
       main IS NOT NULL AND metric.name <> main AS tier, coalesce(contexts, 0) AS contexts,
       coalesce(stratified.seeds, relabelled.seeds, runs, 0) AS seeds, coalesce(runs, 0) AS runs, difference, sd, df, cells,
       t * se AS half, t_90 * se AS half_90, above, below, median, effect, coalesce(stratified.p, relabelled.p, summed.p) AS p,
       coalesce(bits, runs, 0) AS bits, coalesce(bits, runs, 0) > iif(unpaired, 22, 40) OR unpaired AND runs > 1000 AS drawn, p_seeds, p_wilcoxon,
       t_p(difference / se, df) AS p_t, coalesce(stratified.r, summed.r) AS r, low AS tasks_low, high AS tasks_high,
       CASE WHEN margin > abs(difference) THEN t_p((margin - abs(difference)) / se, df) / 2
            WHEN margin > 0 THEN 1 - t_p((margin - abs(difference)) / se, df) / 2 END AS p_equal
FROM request
JOIN (SELECT DISTINCT question, metric, dataset FROM met) AS one
JOIN metric ON metric.place = one.metric
LEFT JOIN summed ON summed.question = one.question AND summed.metric = one.metric AND summed.dataset = one.dataset AND scope = 0
LEFT JOIN student USING (df)
LEFT JOIN stratified ON stratified.question = one.question AND stratified.metric = one.metric AND stratified.dataset = one.dataset
LEFT JOIN directions ON directions.question = one.question AND directions.metric = one.metric AND directions.dataset = one.dataset
LEFT JOIN relabelled ON relabelled.question = one.question AND relabelled.metric = one.metric AND relabelled.dataset = one.dataset
LEFT JOIN over_tasks ON over_tasks.question = one.question AND over_tasks.metric = one.metric AND one.dataset = 0
ORDER BY one.question, one.metric, one.dataset;

-- Holm's correction over the questions and metrics asked for: of p, of p with one sign for each seed, of p of equality. Datasets
-- are a family of their own. What is secondary is tested when everything primary is supported, so that its p is at least the
-- largest of those (serial gatekeeping: Westfall and Krishen 2001), or 1 where no primary metric is defined.
-- Equality has no tiers: one metric may be better and another equal.
CREATE TEMP TABLE corrected AS
SELECT place, kind, of_datasets, tier, family, max(min(1.0, (family + 1 - rank) * p)) OVER (PARTITION BY kind, of_datasets, tier ORDER BY rank) AS holm
FROM (SELECT *, count(*) OVER same AS family, row_number() OVER (same ORDER BY p, place) AS rank
      FROM (SELECT rowid AS place, 'p' AS kind, of_datasets, tier, p FROM tested
            UNION ALL
            SELECT rowid, 'seeds', of_datasets, tier, coalesce(p_seeds, p)
            FROM tested
            WHERE (SELECT count(p_seeds) FROM tested)
            UNION ALL
            SELECT rowid, 'equal', of_datasets, 0, p_equal FROM tested)
      WHERE p IS NOT NULL
      WINDOW same AS (PARTITION BY kind, of_datasets, tier));

CREATE UNIQUE INDEX temp.corrected_kind ON corrected (kind, place);

CREATE TEMP TABLE gate AS
SELECT tested.of_datasets AS of_datasets, max(coalesce(holm, 1.0)) AS p
FROM tested
LEFT JOIN corrected ON kind = 'p' AND place = tested.rowid
WHERE tested.tier = 0
GROUP BY tested.of_datasets;

-- low and high stay where the difference can be: `reach` is that of two values with the question's weights.
CREATE TEMP TABLE pair AS
SELECT tested.rowid AS place, question, metric, dataset, tested.tier AS tier, of_p.family AS family, contexts, seeds, runs, difference,
       sd, max(-reach * (ceiling - floor), difference - half) AS low, min(reach * (ceiling - floor), difference + half) AS high,
       iif(margin > 0, max(-reach * (ceiling - floor), difference - half_90), NULL) AS low90,
       iif(margin > 0, min(reach * (ceiling - floor), difference + half_90), NULL) AS high90, tasks_low, tasks_high, above, below,
       median, effect, tested.p AS p, drawn, max(least_p(bits), iif(drawn, 1e-5, 0)) AS least, p_seeds,
       max(of_p.holm, iif(tested.tier, coalesce(gate.p, 1.0), 0)) AS p_holm, of_seeds.holm AS seeds_holm, p_equal,
       of_equal.holm AS equal_holm, of_equal.family AS equal_family, p_wilcoxon, p_t, r,
       CAST(least_seeds(of_p.family, max(contexts, 1), unpaired) AS INTEGER) AS seeds_able,
       iif(detect > 0, CAST(seeds_needed(detect / sd, cells, of_p.family, contexts, unpaired) AS INTEGER), NULL) AS seeds_needed,
       iif(detect > 0, CAST(seeds_needed(detect / sd_low(sd, df), cells, of_p.family, contexts, unpaired) AS INTEGER), NULL) AS seeds_low,
       iif(detect > 0, CAST(seeds_needed(detect / sd_high(sd, df), cells, of_p.family, contexts, unpaired) AS INTEGER), NULL) AS seeds_high,
       NULL AS verdict
FROM request
JOIN tested
JOIN metric ON metric.place = metric
JOIN (SELECT question, max(reach) AS reach
      FROM (SELECT question, context, sum(abs(weight)) / 2 AS reach FROM term GROUP BY question, context)
      GROUP BY question) USING (question)
LEFT JOIN corrected AS of_p ON of_p.kind = 'p' AND of_p.place = tested.rowid
LEFT JOIN corrected AS of_seeds ON of_seeds.kind = 'seeds' AND of_seeds.place = tested.rowid
LEFT JOIN corrected AS of_equal ON of_equal.kind = 'equal' AND of_equal.place = tested.rowid
LEFT JOIN gate ON gate.of_datasets = tested.of_datasets
ORDER BY tested.rowid;

UPDATE pair
SET verdict = CASE WHEN p_holm <= 0.05
                   THEN iif((difference > 0) <> (SELECT lower FROM metric WHERE metric.place = pair.metric), 'better', 'worse')
                        || iif(seeds_holm > 0.05, ' if contexts are independent', '')
                        || iif(equal_holm <= 0.05, ', equal within the margin', '')
                   ELSE iif(equal_holm <= 0.05, 'equal', 'undecided') END;

-- How many of all questions have an answer and, where no result of these seeds could be one, how many seeds could. Those on
-- datasets are a family of their own.
INSERT INTO words
SELECT 0, group_concat(sentence, ' ')
FROM (SELECT sum(p_holm <= 0.05) || ' of ' || count(*) || iif(dataset > 0, ' on single datasets', '') || ' established'
             || coalesce('; with ' || max(iif(able, NULL, iif(unpaired, runs, seeds)))
                         || iif(max(iif(able, NULL, iif(unpaired, runs, seeds))) = 1, ' seed', iif(unpaired, ' runs', ' seeds')) || ' no p below '
                         || shortest(round(min(iif(able, NULL, min(1.0, least * family))), 4)) || ' is possible'
                         || iif(max(family) > 1, ' after Holm''s correction for ' || max(family) || ' tests', '') || ', '
                         || max(iif(able, NULL, seeds_able)) || iif(unpaired, ' seeds on each side', ' seeds') || ' would do', '') || '.' AS sentence
      FROM request
      JOIN (SELECT *, p_holm <= 0.05 OR least * family <= 0.05 AS able FROM pair WHERE p IS NOT NULL)
      GROUP BY dataset > 0)
HAVING count(*) > 0;

-- With the names that people see.
CREATE TEMP VIEW answer AS
SELECT pair.*, factor, question.baseline AS baseline, question.other AS other, said_baseline, said_other, metric.name AS metric_name,
       title, dataset.name AS dataset_name
FROM pair
JOIN question USING (question)
JOIN metric ON metric.place = pair.metric
LEFT JOIN dataset ON dataset.place = pair.dataset;

INSERT INTO note (note)
SELECT 'runs are paired by seed, which fixes the first weights and the order of images on both sides'
       || iif(count(r) > 0, format('; over seeds their results correlate by %.2f on average (r', round(avg(r), 2) + 0.0)
                            || iif(count(r) > 1, format(' from %.2f to %.2f', round(min(r), 2) + 0.0,
                                                        round(max(r), 2) + 0.0), '') || ')', '')
       || '; --unpaired takes them as independent, to be chosen before the results are known'
FROM pair
JOIN request
WHERE NOT unpaired AND NOT factors AND runs > 0 AND dataset = coalesce((SELECT min(dataset) FROM pair), 0)
HAVING count(*) > 0;

INSERT INTO note (note)
SELECT 'where there are too many choices of signs or labels to count, 100,000 are drawn by Philox with seed ' || draw_seed
FROM request
WHERE EXISTS (SELECT 1 FROM pair WHERE drawn);

-- Groups that begin or end with different tasks.
CREATE TEMP TABLE ends AS
SELECT 1 AS differ
FROM two
JOIN configuration AS of_a ON of_a.configuration = configuration_a
JOIN configuration AS of_b ON of_b.configuration = configuration_b
JOIN tasks AS a ON a.run = of_a.run
JOIN tasks AS b ON b.run = of_b.run AND b.task = a.task AND b.name <> a.name
WHERE a.task IN (0, (SELECT max(task) FROM tasks WHERE tasks.run = of_a.run)) AND (SELECT only_dataset IS NULL FROM request)
LIMIT 1;

-- each asked: INSERT INTO note (note) SELECT '{title} leaves out the first or the last task, another one where the order is another: such groups have means over different tasks' FROM ends WHERE {skips};
-- === words
-- What the numbers of two groups allow to be said, for people who do not read p-values every day.
INSERT INTO words
WITH told AS (
    SELECT answer.*, request.unpaired AS unpaired, margin, iif(margin = 1, 'point', 'points') AS margin_points, detect,
           iif(detect = 1, 'point', 'points') AS detect_points, title || coalesce(' on ' || dataset_name, '') || ': ' AS measure,
           coalesce(p_holm <= 0.05, false) AS shown, coalesce(p <= 0.05, false) AS alone, coalesce(least * family > 0.05, false) AS limited,
           coalesce(sd > 1e-9, false) AS spread, -- with less, rounding alone makes Student's p 0, or nearly
           coalesce(iif(p < 1e-4, format('%.1e', p), shortest(round(p * 1e4) / 1e4)), 'unknown') AS said_p,
           coalesce(iif(p_holm < 1e-4, format('%.1e', p_holm), shortest(round(p_holm * 1e4) / 1e4)), 'unknown') AS said_holm,
           coalesce(iif(p_seeds < 1e-4, format('%.1e', p_seeds), shortest(round(p_seeds * 1e4) / 1e4)), 'unknown') AS said_seeds,
           coalesce(iif(p_t < 1e-4, format('%.1e', p_t), shortest(round(p_t * 1e4) / 1e4)), 'unknown') AS said_t,
           coalesce(iif(p_equal < 1e-4, format('%.1e', p_equal), shortest(round(p_equal * 1e4) / 1e4)), 'unknown') AS said_equal,
           coalesce(iif(equal_holm < 1e-4, format('%.1e', equal_holm), shortest(round(equal_holm * 1e4) / 1e4)), 'unknown') AS said_equal_holm
    FROM request
    JOIN answer
)
SELECT place, measure || format('%s and %s have no seed in common, so that nothing is paired.', said_baseline, said_other)
FROM told
WHERE coalesce(runs, 0) = 0
UNION ALL
SELECT place, measure || said_other
       || iif(difference = 0, ' is 0.00 points from ', format(' is %s points %s ', fixed(abs(difference), 2), iif(difference > 0, 'above', 'below')))
       || said_baseline || iif(low IS NULL, '', format(' (95%% interval %s to %s)', fixed(low, 2, '+'), fixed(high, 2, '+')))
       || CASE WHEN unpaired THEN format(' over %d runs that are not paired', runs)
               WHEN contexts > 1 THEN format(' over %d pairs of runs of %d seed%s', runs, seeds, iif(seeds = 1, '', 's'))
               ELSE format(' over %d common seed%s', runs, iif(runs = 1, '', 's')) END
       || iif(contexts > 1, format(' in %d contexts, above in %d and below in %d', contexts, above, below), '') || '. '
       -- No seeds, or runs, of this number can show a difference: the summary says how many can. What Student's test says stays.
       || iif(limited AND NOT shown,
              'Undecided' || iif(spread, format('; if %s are normally distributed, p is %s', iif(unpaired, 'results', 'differences'), said_t), '') || '.',
              CASE WHEN shown THEN 'Supported' WHEN alone THEN 'Not established' ELSE 'No difference shown' END
              || iif(shown AND seeds_holm > 0.05, ' if runs of one seed are independent of one another in different contexts', '')
              || format(': %s p %s', iif(drawn, 'drawn', 'exact'), said_p)
              || iif(family > 1 OR tier, format(', after Holm''s correction for %d %stest%s%s %s', family, iif(tier, 'secondary ', ''), iif(family = 1, '', 's'),
                                                iif(tier, ' and the primary ones', ''), said_holm), '')
              || iif(p_seeds IS NULL, '', format('; with one sign for each seed in all contexts p is %s', said_seeds))
              || iif(shown OR alone OR low90 IS NOT NULL, '.', '; that is no proof of equality.'))
       || CASE WHEN NOT coalesce(margin > 0, false) THEN ''
               WHEN p_equal IS NULL OR NOT spread THEN format(' Whether it is within %.4g %s is not known without a spread.', margin, margin_points)
               ELSE format(' %s within %.4g %s (90%% interval %s to %s): one-sided p %s', iif(equal_holm <= 0.05, 'Equal', 'Not shown to be equal'), margin,
                           margin_points, fixed(low90, 2, '+'), fixed(high90, 2, '+'), said_equal)
                    || iif(equal_family > 1, format(', after Holm''s correction for %d tests %s', equal_family, said_equal_holm), '') || '.' END
       || CASE WHEN NOT detect > 0 THEN ''
               WHEN NOT spread THEN format(' How many seeds would detect %.4g %s is not known without a spread.', detect, detect_points)
               ELSE format(' To detect %.4g %s with 80%% power%s takes %s seeds%s with the observed standard deviation of %s, %s to %s with those of '
                           || 'its 95%% interval.', detect, detect_points,
                           iif(family > 1, format(' after a correction for %d tests', family), ''), coalesce(nullif(seeds_needed, 0), 'more than a million'),
                           CASE WHEN unpaired THEN ' on each side' WHEN contexts > 1 THEN ' in each context' ELSE '' END, fixed(sd, 2),
                           coalesce(nullif(seeds_low, 0), 'more than a million'), coalesce(nullif(seeds_high, 0), 'more than a million')) END
FROM told
WHERE runs > 0;
-- === images
-- The test images after the last task. both: tasks that two groups have, with as many images.
CREATE TEMP TABLE both AS
SELECT two.rowid AS two, dataset.place AS dataset, a.task AS task_a, b.task AS task_b, a.test_images AS images
FROM request
JOIN two
JOIN configuration AS of_a ON of_a.configuration = configuration_a
JOIN configuration AS of_b ON of_b.configuration = configuration_b
JOIN tasks AS a ON a.run = of_a.run
JOIN tasks AS b ON b.run = of_b.run AND b.name = a.name AND b.test_images = a.test_images
JOIN dataset ON dataset.name = a.name
WHERE a.test_images > 0 AND a.name = coalesce(only_dataset, a.name);

CREATE INDEX temp.both_two ON both (two);

-- kept: both groups kept the images of every such task, and the same ones.
CREATE TEMP TABLE both_seed AS
SELECT two.rowid AS two, a.seed AS seed, a.run AS run_a, b.run AS run_b, a.tasks - 1 AS after_a, b.tasks - 1 AS after_b,
       a.routed AS routed_a, b.routed AS routed_b, NOT EXISTS (
           SELECT 1
           FROM both
           WHERE both.two = two.rowid
                 AND (NOT EXISTS (SELECT 1 FROM per_image WHERE run = a.run AND task = task_a AND after_task = a.tasks - 1)
                      OR NOT EXISTS (SELECT 1 FROM per_image
                                     WHERE run = b.run AND task = task_b AND after_task = b.tasks - 1)
                      OR (SELECT test_digest FROM tasks WHERE run = a.run AND task = task_a)
                         <> (SELECT test_digest FROM tasks WHERE run = b.run AND task = task_b))) AS kept
FROM two
CROSS JOIN compared AS a ON a.configuration = configuration_a
CROSS JOIN compared AS b ON b.configuration = configuration_b AND b.seed = a.seed;

CREATE TEMP TABLE lacking AS
SELECT baseline, other, count(*) AS seeds, sum(kept) AS kept
FROM both_seed
JOIN two ON two.rowid = two
GROUP BY two
HAVING sum(kept) < count(*);

INSERT INTO note (note)
SELECT a.name || ' and ' || b.name || iif((SELECT max(context) FROM context) > 1, ' [' || a.context || ']', '') || ': of '
       || seeds || ' common seed' || iif(seeds = 1, ' ', 's ') || kept || iif(kept = 1, ' has', ' have')
       || ' the test images of both (evaluation.per_image)'
FROM (SELECT * FROM lacking LIMIT 12)
JOIN configuration AS a ON a.grp = baseline
JOIN configuration AS b ON b.grp = other;

INSERT INTO note (note)
SELECT (count(*) - 12) || ' more pairs do not have the test images of all their common seeds'
FROM lacking
HAVING count(*) > 12;
-- === images-answer
-- What the images say: bounds over seeds and images, causes of errors, and McNemar's test per seed and task.
INSERT INTO note (note)
SELECT 'intervals over seeds and images are drawn by Philox with seed ' || draw_seed
       || '; with fewer than about ten seeds they are somewhat too narrow'
       || iif(1 IN (SELECT count(DISTINCT seed) FROM looked GROUP BY two), ', and those of one seed leave out what other seeds would do', '')
FROM request
WHERE EXISTS (SELECT 1 FROM bounds);

INSERT INTO note (note)
SELECT 'McNemar''s test compares two trained models on the images of one task, not two policies; the tests over seeds do that'
WHERE EXISTS (SELECT 1 FROM looked);

INSERT INTO imaged
WITH task AS (
    SELECT two, dataset, count(*) AS seeds, max(images) AS images,
           iif(count(router_a) = count(*), sum(router_a), NULL) AS router_a,
           iif(count(router_b) = count(*), sum(router_b), NULL) AS router_b,
           iif(count(class_a) = count(*), sum(class_a), NULL) AS class_a,
           iif(count(class_b) = count(*), sum(class_b), NULL) AS class_b
    FROM (SELECT * FROM looked ORDER BY two, dataset, seed)
    GROUP BY two, dataset
), term AS (
    SELECT two, dataset, seeds, images, router_a / seeds AS router_a, router_b / seeds AS router_b,
           class_a / seeds AS class_a, class_b / seeds AS class_b
    FROM task
    UNION ALL
    SELECT two, 0, seeds, sum(images),
           iif(count(router_a) = tasks, sum(router_a / (tasks * seeds)), NULL),
           iif(count(router_b) = tasks, sum(router_b / (tasks * seeds)), NULL),
           iif(count(class_a) = tasks, sum(class_a / (tasks * seeds)), NULL),
           iif(count(class_b) = tasks, sum(class_b / (tasks * seeds)), NULL)
    FROM (SELECT *, count(*) OVER (PARTITION BY two) AS tasks FROM task ORDER BY two, dataset)
    GROUP BY two
)
SELECT baseline, other, dataset, seeds, images, difference, low, high, router_a, router_b, class_a, class_b
FROM term
JOIN bounds USING (two, dataset)
JOIN two ON two.rowid = two
WHERE dataset > 0 OR (SELECT only_dataset FROM request) IS NULL
ORDER BY two, dataset;

INSERT INTO discordance
SELECT baseline, other, dataset, seed, images, only_a, only_b, p,
       max(min(1.0, (count + 1 - rank) * p)) OVER (ORDER BY rank) AS p_holm
FROM (SELECT *, row_number() OVER (ORDER BY p, place) AS rank, count(*) OVER () AS count
      FROM (SELECT *, rowid AS place, mcnemar_p(only_a, only_b) AS p FROM looked))
JOIN two ON two.rowid = two
ORDER BY place;
-- === parts
-- The answer, as views (compare.h). Datasets are named where any are asked for.
CREATE TEMP VIEW detailed AS
SELECT max(dataset) > 0 AS datasets,
       (SELECT CASE WHEN NOT max(accumulates) THEN 'mean' WHEN min(accumulates) THEN 'all images' ELSE 'mean or all images' END FROM compared) AS whole
FROM sample;

CREATE TEMP VIEW answer_contexts AS
SELECT context, name AS settings FROM context WHERE (SELECT max(context) FROM configuration) > 1 ORDER BY context;

CREATE TEMP VIEW answer_groups AS
SELECT iif((SELECT max(context) FROM configuration) > 1, context, NULL) AS context, configuration.name AS other, metric.name AS metric,
       iif(datasets, coalesce(dataset.name, whole), NULL) AS dataset, n AS seeds, mean, sd, max(floor, mean - half) AS low,
       min(ceiling, mean + half) AS high, context || ' ' || sample.metric || ' ' || sample.dataset AS block
FROM sample
JOIN configuration USING (grp)
CROSS JOIN detailed
JOIN metric ON metric.place = sample.metric
LEFT JOIN dataset ON dataset.place = sample.dataset
ORDER BY context, sample.metric, sample.dataset, grp;

CREATE TEMP VIEW answer_pairs AS
SELECT factor, baseline, other, metric_name AS metric, iif(datasets, coalesce(dataset_name, whole), NULL) AS dataset,
       iif((SELECT max(context) FROM configuration) > 1, contexts, NULL) AS contexts, seeds,
       iif((SELECT unpaired OR EXISTS (SELECT 1 FROM pair WHERE contexts > 1) FROM request), runs, NULL) AS runs, difference, sd, low, high,
       low90, high90, tasks_low, tasks_high, iif(contexts > 1, above, NULL) AS above, iif(contexts > 1, below, NULL) AS below, median,
       effect, p, p_seeds, p_holm, equal_holm AS p_equal, p_wilcoxon, p_t, r, seeds_needed, seeds_low, seeds_high, verdict
FROM answer
CROSS JOIN detailed
ORDER BY place;

CREATE TEMP VIEW answer_details AS
SELECT context, factor, question.baseline AS baseline, question.other AS other, metric.name AS metric,
       iif(datasets, coalesce(dataset.name, whole), NULL) AS dataset, runs, difference, sd, low, high, median, effect, p, p_wilcoxon, p_t, r
FROM detail
CROSS JOIN detailed
JOIN question USING (question)
JOIN metric ON metric.place = detail.metric
LEFT JOIN dataset ON dataset.place = detail.dataset
ORDER BY detail.rowid;

CREATE TEMP VIEW answer_images AS
SELECT iif((SELECT max(context) FROM configuration) > 1, b.context, NULL) AS context, a.name AS baseline, b.name AS other,
       iif(datasets, coalesce(dataset.name, whole), NULL) AS dataset, seeds, images, difference, low, high,
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
SELECT factor, baseline, other, metric_name AS metric, iif(datasets AND place > 0, coalesce(dataset_name, whole), NULL) AS dataset, words
FROM words
CROSS JOIN detailed
LEFT JOIN answer USING (place)
ORDER BY place;

CREATE TEMP VIEW answer_notes AS SELECT note FROM note ORDER BY place;
