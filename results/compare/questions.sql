-- What is asked: pairs of groups or effects of factors, each in all the contexts that have them.
--
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
WHERE holders = contexts AND (SELECT baseline IS NULL AND NOT factors FROM request)
ORDER BY baseline = 'Zero-shot', baseline
LIMIT 1;

UPDATE request
SET baseline = iif(baseline IS NULL AND NOT factors, (SELECT baseline FROM has WHERE holders = contexts
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
       iif(b.name IS request.baseline, a.configuration, b.configuration) AS configuration_b, a.context AS context,
       iif(b.name IS request.baseline, b.name, a.name) AS baseline_name,
       iif(b.name IS request.baseline, a.name, b.name) AS other_name, 0 AS question
FROM request
JOIN configuration AS a
JOIN configuration AS b ON b.context = a.context AND b.grp > a.grp
WHERE feasible AND NOT factors AND (request.baseline IS NULL OR request.baseline IN (a.name, b.name))
ORDER BY a.grp, b.grp;

-- A question is one of names, whatever the number of its contexts; factor: what it is an effect of. Its difference in a context
-- is the sum of its terms: values of groups times weights. said_baseline, said_other: how sentences call the sides.
CREATE TEMP TABLE question (question INTEGER PRIMARY KEY, factor TEXT, baseline TEXT, other TEXT, said_baseline TEXT,
                            said_other TEXT);
CREATE TEMP TABLE term (question INTEGER, context INTEGER, configuration INTEGER, weight REAL,
                        PRIMARY KEY (question, context, configuration)) WITHOUT ROWID;

INSERT INTO question (baseline, other, said_baseline, said_other)
SELECT baseline_name, other_name, baseline_name, other_name
FROM two
GROUP BY baseline_name, other_name
ORDER BY min(rowid);

CREATE INDEX temp.question_names ON question (baseline, other);
UPDATE two SET question = (SELECT question FROM question WHERE question.baseline = baseline_name AND question.other = other_name);

INSERT INTO term
SELECT question, context, configuration_a, -1.0 FROM two
UNION ALL
SELECT question, context, configuration_b, 1.0 FROM two;

-- Factors: the levels that others are compared with are those of the baseline, else of no merging and the like, else the first.
CREATE TEMP TABLE lowest AS
SELECT key, value
FROM (SELECT place, key, value, row_number() OVER (PARTITION BY place ORDER BY named DESC, value IN ('none', 'zero_shot', 'false') DESC,
                                                   value COLLATE numeric) AS rank
      FROM (SELECT place, key, value, max(name IS baseline) AS named
            FROM level
            JOIN configuration USING (configuration)
            JOIN request
            GROUP BY place, value))
WHERE rank = 1 AND (SELECT factors FROM request)
ORDER BY place;

-- Contexts with a group for each pair of levels. a and b: the levels; from_a, from_b: the lowest.
CREATE TEMP TABLE crossed AS
SELECT context, configuration, a.key AS key_a, b.key AS key_b, a.value AS a, b.value AS b, low_a.value AS from_a, low_b.value AS from_b
FROM configuration
JOIN level AS a USING (configuration)
JOIN level AS b USING (configuration)
JOIN lowest AS low_a ON low_a.key = a.key
JOIN lowest AS low_b ON low_b.key = b.key
WHERE a.place < b.place;

INSERT INTO note (note)
SELECT 'effects are against ' || group_concat(key || ' = ' || value, ' and ') || '; --baseline with the name of a group chooses others'
FROM lowest
HAVING count(*) > 0;

CREATE TEMP TABLE uncrossed AS
SELECT context, count(*) AS has, count(DISTINCT a) * count(DISTINCT b) AS needs
FROM crossed
GROUP BY context
HAVING has <> needs OR count(DISTINCT a || char(0) || b) < has OR count(DISTINCT a) = 1 OR count(DISTINCT b) = 1
       OR NOT max(a = from_a) OR NOT max(b = from_b);

INSERT INTO note (note)
SELECT count(*) || ' of ' || total || iif(total = 1, ' context', ' contexts') || iif(count(*) = 1, ' is', ' are')
       || ' left out: effects need one group for each combination of the levels, and two levels of each factor; the first has ' || has
       || iif(has = 1, ' group', ' groups') || ' for ' || needs || iif(needs = 1, ' combination', ' combinations') || '; --only chooses groups'
FROM (SELECT has, needs, (SELECT count(DISTINCT context) FROM crossed) AS total FROM uncrossed ORDER BY context)
HAVING count(*) > 0;

DELETE FROM crossed WHERE context IN (SELECT context FROM uncrossed);

INSERT INTO question (factor, baseline, other, said_baseline, said_other)
SELECT key_a, from_a, a, from_a || ', averaged over ' || key_b, key_a || ' = ' || a FROM crossed WHERE a <> from_a GROUP BY a
UNION ALL
SELECT key_b, from_b, b, from_b || ', averaged over ' || key_a, key_b || ' = ' || b FROM crossed WHERE b <> from_b GROUP BY b
UNION ALL
SELECT key_a || ' × ' || key_b, from_a || ' × ' || from_b, a || ' × ' || b, 'that with ' || from_b,
       'the difference of ' || key_a || ' = ' || a || ' from ' || from_a || ' with ' || key_b || ' = ' || b
FROM crossed
WHERE a <> from_a AND b <> from_b
GROUP BY a, b;

INSERT INTO term
SELECT question, context, configuration, iif(a = other, 1.0, -1.0) / (count(*) OVER (PARTITION BY question, context) / 2)
FROM crossed JOIN question ON factor = key_a AND a IN (baseline, other)
UNION ALL
SELECT question, context, configuration, iif(b = other, 1.0, -1.0) / (count(*) OVER (PARTITION BY question, context) / 2)
FROM crossed JOIN question ON factor = key_b AND b IN (baseline, other)
UNION ALL
SELECT question, c.context, c.configuration, iif((c.a = c.from_a) = (c.b = c.from_b), 1.0, -1.0)
FROM question
JOIN crossed AS top ON factor = top.key_a || ' × ' || top.key_b AND other = top.a || ' × ' || top.b
JOIN crossed AS c ON c.context = top.context AND c.a IN (c.from_a, top.a) AND c.b IN (c.from_b, top.b);
