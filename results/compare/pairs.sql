-- What groups are compared with: a usual baseline where every context with several groups has it and none was named.
CREATE TEMP VIEW has AS
SELECT word AS baseline, count(*) AS contexts, sum(has) AS holders
FROM (SELECT word, max(name = word) AS has
      FROM (SELECT 'none' AS word UNION ALL SELECT 'zero_shot' UNION ALL SELECT 'Zero-shot'
            UNION ALL SELECT baseline FROM request WHERE baseline NOT IN ('none', 'zero_shot', 'Zero-shot'))
      JOIN configuration
      GROUP BY word, context
      HAVING count(*) > 1)
GROUP BY word;

INSERT INTO note (note)
SELECT 'the others are compared with ' || baseline || '; mtil compare --baseline chooses another, and --baseline all '
       || 'compares every pair'
FROM has
WHERE holders = contexts AND (SELECT baseline FROM request) IS NULL
ORDER BY baseline = 'Zero-shot', baseline
LIMIT 1;

UPDATE request
SET baseline = iif(baseline IS NULL, (SELECT baseline FROM has WHERE holders = contexts
                                      ORDER BY baseline = 'Zero-shot', baseline LIMIT 1), nullif(baseline, 'all'));

INSERT INTO note (note)
SELECT 'in ' || (contexts - holders) || ' of ' || (SELECT count(*) FROM context) || ' contexts ' || baseline
       || ' is absent, so that nothing is compared there'
FROM has
WHERE holders < contexts AND baseline = (SELECT baseline FROM request);

-- Nobody reads more tests than 200,000.
CREATE TEMP TABLE planned AS
SELECT pairs, pairs * (SELECT count(*) FROM metric)
              * (1 + iif((SELECT datasets FROM request), (SELECT count(*) FROM dataset), 0)) AS tests
FROM (SELECT sum(iif((SELECT baseline FROM request) IS NULL, groups * (groups - 1) / 2, groups)) AS pairs
      FROM (SELECT count(*) AS groups FROM configuration GROUP BY context));

UPDATE request SET feasible = (SELECT tests <= 200000 FROM planned);

INSERT INTO note (note)
SELECT pairs || ' pairs of groups would take ' || tests || ' tests, more than 200000: they are not compared; choose runs, '
       || 'one metric or a baseline'
FROM planned
WHERE tests > 200000;

-- Groups of a context against one another: all of them, or each with the baseline.
CREATE TEMP TABLE two AS
SELECT iif(b.name IS request.baseline, b.grp, a.grp) AS baseline, iif(b.name IS request.baseline, a.grp, b.grp) AS other,
       iif(b.name IS request.baseline, b.configuration, a.configuration) AS configuration_a,
       iif(b.name IS request.baseline, a.configuration, b.configuration) AS configuration_b
FROM request
JOIN configuration AS a
JOIN configuration AS b ON b.context = a.context AND b.grp > a.grp
WHERE feasible AND (request.baseline IS NULL OR request.baseline IN (a.name, b.name))
ORDER BY a.grp, b.grp;

CREATE TEMP TABLE difference (two INTEGER, metric INTEGER, dataset INTEGER, seed INTEGER, value REAL,
                              PRIMARY KEY (two, metric, dataset, seed)) WITHOUT ROWID;

INSERT INTO difference
SELECT two.rowid, a.metric, a.dataset, a.seed, iif(abs(b.value - a.value) <= 1e-10, 0.0, b.value - a.value)
FROM two
CROSS JOIN measured AS a ON a.configuration = configuration_a
CROSS JOIN measured AS b ON b.configuration = configuration_b AND b.metric = a.metric AND b.dataset = a.dataset
                            AND b.seed = a.seed;

-- Differences that are the same on paper are the same: no deviation is made of what rounding left.
UPDATE difference
SET value = (SELECT value FROM difference AS first
             WHERE first.two = alike.two AND first.metric = alike.metric AND first.dataset = alike.dataset
             ORDER BY seed LIMIT 1)
FROM (SELECT two, metric, dataset
      FROM difference
      GROUP BY two, metric, dataset
      HAVING max(value) > min(value) AND max(value) - min(value) <= 1e-10) AS alike
WHERE difference.two = alike.two AND difference.metric = alike.metric AND difference.dataset = alike.dataset;

-- Each test statistic is an aggregate over the differences. half: of the 95% interval.
CREATE TEMP TABLE tested AS
SELECT two.rowid AS two, a.metric AS metric, a.dataset AS dataset, count(value) AS n,
       mean(value, seed) AS difference, sd(value, seed) AS sd, half_width(value, seed) AS half,
       hodges_lehmann(value) AS median, hedges_g(value, seed) AS effect,
       permutation_p(value, seed, draw_seed) AS p, wilcoxon_p(value) AS p_wilcoxon, paired_t_p(value, seed) AS p_t
FROM request
JOIN two
JOIN sample AS a ON a.grp = two.baseline
JOIN sample AS b ON b.grp = two.other AND b.metric = a.metric AND b.dataset = a.dataset
LEFT JOIN difference ON difference.two = two.rowid AND difference.metric = a.metric AND difference.dataset = a.dataset
GROUP BY two.rowid, a.metric, a.dataset;

-- Holm's correction, of means and of datasets each for themselves; family: tests that are corrected together.
CREATE TEMP TABLE pair AS
SELECT tested.place AS place, context.context AS context, two.baseline AS baseline, other, metric, dataset, n, difference,
       sd, max(floor - 100, difference - half) AS low, min(100 - floor, difference + half) AS high, median, effect, p,
       iif(p IS NULL, NULL, max(min(1.0, (family + 1 - rank) * p)) OVER (PARTITION BY dataset = 0 ORDER BY rank))
           AS p_holm,
       p_wilcoxon, p_t, iif(detect > 0 AND sd > 0, seeds_needed(detect / sd), NULL) AS seeds_needed, family
FROM (SELECT tested.rowid AS place, *, count(p) OVER (PARTITION BY dataset = 0) AS family,
             row_number() OVER (PARTITION BY dataset = 0 ORDER BY p IS NULL, p, tested.rowid) AS rank
      FROM tested) AS tested
JOIN request
JOIN two ON two.rowid = two
JOIN metric ON metric.place = metric
JOIN configuration AS context ON context.grp = two.baseline
ORDER BY tested.place;

-- The same two groups in all contexts that have both; of one dataset where no means were asked for.
CREATE TEMP TABLE overview AS
SELECT min(place) AS place, a AS baseline, b AS other, metric, contexts, sum(difference / contexts) AS difference,
       min(difference) AS least, max(difference) AS most, sum(difference > 0) AS above,
       sum(difference > 0 AND p_holm <= 0.05) AS supported_above, sum(difference < 0) AS below,
       sum(difference < 0 AND p_holm <= 0.05) AS supported_below
FROM (SELECT pair.*, a.name AS a, b.name AS b, count(*) OVER (PARTITION BY a.name, b.name, metric) AS contexts
      FROM pair
      JOIN configuration AS a ON a.grp = baseline
      JOIN configuration AS b ON b.grp = other
      WHERE n > 0 AND (dataset = 0 OR NOT EXISTS (SELECT 1 FROM pair WHERE dataset = 0))
      ORDER BY a.name, b.name, metric, place)
WHERE contexts > 1
GROUP BY a, b, metric
ORDER BY place;
