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
