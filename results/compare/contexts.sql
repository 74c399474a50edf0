-- After the accuracies are read: which runs are left out, contexts, and groups in the order in which they are shown.
INSERT INTO note (note)
SELECT 'runs of several ' || what || ' stand side by side: ' || substr(list, 1, 200)
FROM (SELECT 'backends' AS what, count(DISTINCT backend) AS count, group_concat(DISTINCT backend) AS list FROM chosen
      UNION ALL
      SELECT 'precisions', count(DISTINCT "precision"), group_concat(DISTINCT "precision") FROM chosen
      UNION ALL
      SELECT 'versions of the program', count(DISTINCT program_version), group_concat(DISTINCT program_version)
      FROM chosen)
WHERE count > 1;

-- Older programs did not look at the test images of runs of the same settings.
CREATE TEMP TABLE left_out AS
WITH tested AS MATERIALIZED (
    SELECT rowid AS place, run, configuration, seed, complete,
           (SELECT group_concat(test_images) FROM tasks WHERE tasks.run = compared.run) AS images
    FROM compared
), lead AS (
    SELECT configuration, run AS lead, images AS expected, min(place) FROM tested WHERE complete GROUP BY configuration
)
SELECT run, configuration, seed, iif(complete, 'it was tested on other images than run ' || lead || ' of the same settings',
                          'its accuracy matrix has holes') AS why
FROM tested
LEFT JOIN lead USING (configuration)
WHERE NOT complete OR images IS NOT expected
ORDER BY place;

INSERT INTO note (note) SELECT 'run ' || run || ' is left out: ' || why FROM left_out;
DELETE FROM compared WHERE run IN (SELECT run FROM left_out);
DELETE FROM measured WHERE (configuration, seed) IN (SELECT configuration, seed FROM left_out);
DELETE FROM configuration
WHERE configuration NOT IN (SELECT configuration FROM compared)
      OR EXISTS (SELECT 1 FROM only_group) AND base NOT IN (SELECT name FROM only_group);
DELETE FROM told WHERE configuration NOT IN (SELECT configuration FROM configuration);
DELETE FROM level WHERE configuration NOT IN (SELECT configuration FROM configuration);

UPDATE configuration
SET run = (SELECT run FROM compared WHERE compared.configuration = configuration.configuration ORDER BY seed LIMIT 1);

UPDATE configuration
SET tests = 'test images' || coalesce((
        SELECT group_concat(' ' || name || ' ' || test_images, '')
        FROM (SELECT name, test_images FROM tasks JOIN dataset USING (name) WHERE tasks.run = configuration.run
              ORDER BY place, task)), '');

-- What a choice decides on and some configurations lack is chosen with it.
CREATE TEMP TABLE varied AS
SELECT key, max(own) AS chosen
FROM apart
WHERE here = (SELECT min(configuration) FROM configuration) AND NOT by
GROUP BY key;

UPDATE configuration
SET agreed = coalesce((SELECT group_concat(setting, ', ') || ', '
                    FROM (SELECT setting FROM told JOIN varied USING (key)
                          WHERE told.configuration = configuration.configuration AND NOT chosen
                                AND (value IS NULL OR NOT idle)
                          ORDER BY key)), '') || tests;

UPDATE configuration SET context = ranked.context
FROM (SELECT configuration, dense_rank() OVER (ORDER BY agreed COLLATE numeric) AS context FROM configuration) AS ranked
WHERE ranked.configuration = configuration.configuration;

-- Configurations of one context with the same compared values are told apart by whatever else differs; rows have their labels.
UPDATE configuration SET name = base;
UPDATE configuration
SET name = CASE (SELECT group_concat(key) FROM asked)
               WHEN 'row' THEN (SELECT label FROM chosen JOIN labels ON hash = suite_hash WHERE chosen.run = alike.run)
               ELSE alike.base || coalesce(' (' || (
        SELECT group_concat(setting, ', ')
        FROM (SELECT setting FROM told
              WHERE told.configuration = alike.configuration
                    AND key IN (SELECT key FROM apart JOIN configuration AS other ON other.configuration = there
                                WHERE here = lead AND other.context = alike.context AND other.base = alike.base)
              ORDER BY key)) || ')', '') END
FROM (SELECT configuration, run, context, base, min(configuration) OVER same AS lead, count(*) OVER same AS count
      FROM configuration
      WINDOW same AS (PARTITION BY context, base)) AS alike
WHERE alike.configuration = configuration.configuration AND count > 1;

-- What no stored setting tells apart has the beginning of its digest.
UPDATE configuration SET name = name || ' (' || substr((SELECT suite_hash FROM chosen WHERE chosen.run = same.run), 1, 8) || ')'
FROM (SELECT configuration, run, count(*) OVER (PARTITION BY context, name) AS count FROM configuration) AS same
WHERE same.configuration = configuration.configuration AND count > 1;

UPDATE configuration SET grp = ranked.grp
FROM (SELECT configuration, row_number() OVER (ORDER BY context, base COLLATE numeric, name COLLATE numeric,
                                               configuration) AS grp
      FROM configuration) AS ranked
WHERE ranked.configuration = configuration.configuration;

-- Named first is what tells contexts of several groups apart, because tables cut long names.
CREATE TEMP TABLE telling AS
SELECT key
FROM told
JOIN configuration USING (configuration)
WHERE context IN (SELECT context FROM configuration GROUP BY context HAVING count(*) > 1)
GROUP BY key
HAVING count(DISTINCT value) + max(value IS NULL) > 1;

CREATE TEMP TABLE context AS
SELECT context, coalesce((SELECT group_concat(setting, ', ')
                          FROM (SELECT setting FROM told JOIN varied USING (key)
                                WHERE told.configuration = first.configuration AND NOT chosen
                                ORDER BY key NOT IN (SELECT key FROM telling), key)), '') AS name, tests
FROM (SELECT context, configuration, tests, min(grp) FROM configuration GROUP BY context) AS first;

UPDATE context SET name = name || iif(name = '', '', ', ') || tests
WHERE (SELECT count(DISTINCT tests) FROM configuration) > 1;

INSERT INTO note (note)
SELECT 'every run has ' || iif((SELECT count(*) FROM asked) = 1, (SELECT key FROM asked) || ' = ', '') || min(name)
       || ': there is nothing to compare it with'
FROM configuration
HAVING count(DISTINCT name) = 1;

-- Groups that stand alone, and the one of another name that differs least.
INSERT INTO note (note)
WITH alone AS (
    SELECT *, row_number() OVER (ORDER BY grp) AS place FROM configuration GROUP BY context HAVING count(*) = 1
), near AS (
    SELECT alone.grp AS here, other.grp AS there, alone.configuration AS a, other.configuration AS b, alone.name AS name,
           other.name AS other,
           (SELECT count(*) FROM apart
            WHERE here = alone.configuration AND there = other.configuration AND NOT by AND NOT own) AS differences
    FROM alone
    JOIN configuration AS other ON other.name <> alone.name
    WHERE place <= 12
), nearest AS (
    SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY here ORDER BY differences, there) AS place FROM near)
    WHERE place = 1
)
SELECT name || ' is not compared with ' || other || ': they differ in ' || coalesce((
           SELECT group_concat(key || ' (' || coalesce(a, 'not set') || ' here, ' || coalesce(b, 'not set') || ' there)',
                               ', ')
           FROM (SELECT * FROM apart WHERE here = nearest.a AND there = nearest.b AND NOT by AND NOT own
                 ORDER BY key LIMIT 6)), 'their test images') || iif(differences > 6, ' and more', '')
FROM (SELECT * FROM nearest ORDER BY here) AS nearest
WHERE NOT EXISTS (SELECT 1 FROM nearest AS said WHERE said.here = nearest.there AND said.there = nearest.here
                                                      AND said.here < nearest.here);

INSERT INTO note (note)
SELECT (count(*) - 12) || ' more groups stand alone in their settings'
FROM (SELECT 1 FROM configuration GROUP BY context HAVING count(*) = 1)
HAVING count(*) > 12 AND (SELECT count(DISTINCT name) FROM configuration) > 1;

CREATE TEMP TABLE sample AS
SELECT grp, metric, dataset, count(*) AS n, mean(value, seed) AS mean, (max(value) - min(value) > 1e-10) * sd(value, seed) AS sd,
       (max(value) - min(value) > 1e-10) * half_width(value, seed) AS half -- rounding alone is no spread
FROM configuration
JOIN measured USING (configuration)
GROUP BY configuration.configuration, metric, dataset;

CREATE INDEX temp.sample_of ON sample (grp, metric, dataset);

INSERT INTO note (note)
SELECT name || ' is not defined for any of these runs'
FROM metric
WHERE place NOT IN (SELECT metric FROM sample)
ORDER BY place;
