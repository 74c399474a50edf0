-- The stages of a comparison up to what is asked, in the order of compare.c, over the connection's temporary tables.
-- === request
CREATE TEMP TABLE request (status TEXT, only_dataset TEXT, detect REAL, draw_seed INTEGER, baseline TEXT, datasets INTEGER,
                           margin REAL, unpaired INTEGER, main TEXT, factors INTEGER, feasible INTEGER);
CREATE TEMP TABLE only_group (name TEXT);
CREATE TEMP TABLE note (place INTEGER PRIMARY KEY, note TEXT);
CREATE TEMP TABLE metric (place INTEGER PRIMARY KEY, name TEXT, title TEXT, lower INTEGER, floor REAL, ceiling REAL);
-- === runs
-- What of `chosen` may be compared, before any accuracy is read. `request` has one row; `asked` what is compared.
INSERT INTO note (note)
SELECT count(*) || iif(count(*) = 1, ' run that did not finish is left out', ' runs that did not finish are left out')
FROM chosen
WHERE status <> (SELECT status FROM request)
HAVING count(*) > 0;

DELETE FROM chosen WHERE status <> (SELECT status FROM request);

CREATE TEMP TABLE compared AS
SELECT run, seed, tasks, selection <> 'none' AS routed, (setting = 'class_incremental') + 2 * (setting = 'domain_incremental') AS accumulates,
       method = 'zero_shot' AND setting NOT IN ('open_domain', 'class_incremental', 'domain_incremental') AS untrained, CAST(dense_rank() OVER (ORDER BY suite_hash) AS INTEGER) AS configuration,
       false AS complete
FROM chosen
ORDER BY suite_hash, seed;

CREATE UNIQUE INDEX temp.compared_run ON compared (run);
CREATE UNIQUE INDEX temp.compared_seed ON compared (configuration, seed);

-- Runs that differ in the seed alone; run: the first of them. base: the compared values. agreed: what a context has in common.
CREATE TEMP TABLE configuration (configuration INTEGER PRIMARY KEY, run INTEGER, base TEXT, tests TEXT, agreed TEXT,
                                 context INTEGER, name TEXT, grp INTEGER);

INSERT INTO configuration (configuration, run)
SELECT configuration, run FROM (SELECT configuration, run, min(seed) FROM compared GROUP BY configuration);

-- Settings that are not the same everywhere, and those that are compared; a value of null is not set. content: of an input;
-- idle: the value makes no difference; by: the key is compared; own: it belongs to what is compared.
CREATE TEMP TABLE told (configuration INTEGER, key TEXT, value TEXT, content INTEGER, idle INTEGER, by INTEGER, own INTEGER,
                        setting TEXT AS (key || coalesce(' = ' || value, ' not set')),
                        section TEXT AS (substr(key, 1, instr(key || '.', '.') - 1)),
                        PRIMARY KEY (configuration, key)) WITHOUT ROWID;

CREATE TEMP VIEW apart AS
SELECT a.configuration AS here, b.configuration AS there, a.key AS key, a.value AS a, b.value AS b, a.by AS by,
       a.own AND (a.value IS NULL OR b.value IS NULL) AS own
FROM told AS a
JOIN told AS b ON b.key = a.key AND b.value IS NOT a.value AND NOT (a.idle AND b.idle);

-- In the order of the first runs that have them.
CREATE TEMP TABLE dataset AS
SELECT row_number() OVER (ORDER BY run, task) AS place, name
FROM (SELECT name, min(tasks.run) AS run, task
      FROM (SELECT min(run) AS run FROM compared GROUP BY configuration)
      JOIN tasks USING (run)
      GROUP BY name);

-- What tests are functions of: a value per context, seed and group, of each metric and dataset; dataset 0: the mean.
CREATE TEMP TABLE measured (configuration INTEGER, metric INTEGER, dataset INTEGER, seed INTEGER, value REAL,
                            PRIMARY KEY (configuration, metric, dataset, seed)) WITHOUT ROWID;

CREATE TEMP VIEW observed AS
SELECT context, seed, grp, metric, dataset, value FROM configuration JOIN measured USING (configuration);

CREATE TEMP TABLE words (place INTEGER PRIMARY KEY, words TEXT);

-- Of single images: what compare.c finds, by seed and by task, and what follows.
CREATE TEMP TABLE looked (two, dataset, seed, images, only_a, only_b, router_a, router_b, class_a, class_b);
CREATE TEMP TABLE bounds (two, dataset, difference, low, high);
CREATE TEMP TABLE imaged (baseline, other, dataset, seeds, images, difference, low, high, router_a, router_b, class_a,
                          class_b);
CREATE TEMP TABLE discordance (baseline, other, dataset, seed, images, only_a, only_b, p, p_holm);
-- === settings
-- After `run_values` has the settings and contents of each configuration: keys in which any differs from the first one, and those
-- that are asked for.
INSERT OR IGNORE INTO told (configuration, key, value, content)
SELECT configuration.configuration, keys.key, own.value, keys.content
FROM (SELECT key, max(content) AS content
      FROM run_values
      GROUP BY key
      HAVING count(*) < (SELECT count(*) FROM configuration) OR min(value) <> max(value)) AS keys
CROSS JOIN configuration
LEFT JOIN run_values AS own ON own.key = keys.key AND own.place = configuration.configuration
LEFT JOIN run_values AS first ON first.key = keys.key AND first.place = 1
WHERE configuration.configuration = 1 OR own.value IS NOT first.value;

INSERT OR IGNORE INTO told (configuration, key, value, content)
SELECT 1, asked.key, value, coalesce(content, 0)
FROM asked
LEFT JOIN run_values ON run_values.place = 1 AND run_values.key = asked.key;

CREATE TEMP VIEW named_by AS
SELECT iif(whole, '*', coalesce(dimension.key, asked.key)) AS key,
       iif(name IS NULL, substr(asked.key, 1, instr(asked.key, '.') - 1), section) AS section
FROM asked
LEFT JOIN dimension ON name = asked.key;

-- A dataset's template decides its prompts. Other test images are never compared. What belongs to a compared choice is its
-- own section, as the decay of a policy that has one, and those that it decides on.
UPDATE told
SET idle = NOT content AND (value IS NULL OR is_incidental(key, value)),
    by = key <> 'test images' AND EXISTS (
        SELECT 1 FROM named_by
        WHERE named_by.key IN ('*', told.key) OR told.key = 'prompts' AND named_by.key GLOB '*.template'),
    own = EXISTS (
        SELECT 1 FROM named_by
        WHERE named_by.section = told.section
              OR named_by.key = 'method.name'
                 AND told.section IN ('adapter', 'combine', 'delta', 'merge', 'selector', 'tasks', 'training')
              OR named_by.key = 'merge.policy' AND told.section = 'combine');

-- Each configuration has each key.
INSERT OR IGNORE INTO told (configuration, key, value, idle, by, own)
SELECT configuration.configuration, key, value, idle, by, own
FROM configuration
JOIN told ON told.configuration = 1;

-- What each configuration has of what is asked for.
CREATE TEMP TABLE level (configuration INTEGER, place INTEGER, key TEXT, value TEXT, PRIMARY KEY (configuration, place)) WITHOUT ROWID;

INSERT INTO level
SELECT configuration.configuration, place, asked.key, CASE asked.key
           WHEN 'policy' THEN policy
           WHEN 'method' THEN method
           WHEN 'selector' THEN selector
           WHEN 'setting' THEN chosen.setting
           WHEN 'order' THEN task_order
           WHEN 'model' THEN model
           WHEN 'suite' THEN suite
           WHEN 'row' THEN (SELECT "row" FROM names WHERE names.run = (
                                SELECT min(run) FROM compared WHERE compared.configuration = configuration.configuration))
           ELSE coalesce(told.value, 'not set') END
FROM configuration
JOIN asked
JOIN chosen ON chosen.run = configuration.run
LEFT JOIN told ON told.configuration = configuration.configuration AND told.key = asked.key;

UPDATE configuration
SET base = (SELECT group_concat(iif((SELECT count(*) FROM asked) > 1, key || ' = ', '') || value, ', ')
            FROM (SELECT key, value FROM level WHERE level.configuration = configuration.configuration ORDER BY place));
-- === measure
-- The metrics asked for, of runs whose matrix is complete: of each task, then of each run.
CREATE TEMP TABLE trained (run INTEGER PRIMARY KEY, tasks INTEGER, accumulates INTEGER); -- in the order of evaluations
INSERT INTO trained SELECT run, tasks, accumulates FROM compared WHERE NOT untrained;

CREATE TEMP TABLE of_task (run INTEGER, task INTEGER, tasks INTEGER
-- each asked: , {name} REAL
, PRIMARY KEY (run, task)) WITHOUT ROWID;

INSERT INTO of_task
SELECT run, task, tasks
-- each asked: , {sql} AS {name}
FROM trained
CROSS JOIN (SELECT run, task, after_task, 100.0 * correct / images AS accuracy FROM evaluations) USING (run)
GROUP BY run, task
HAVING count(*) FILTER (WHERE after_task >= 0 AND after_task < tasks) = iif(accumulates = 1, tasks - task, tasks);

-- A model that is never trained stays as it was: a(i, j) = z(j).
INSERT INTO of_task
SELECT run, task, tasks
-- each asked: , {sql} AS {name}
FROM (SELECT run, compared.tasks AS tasks, evaluations.task AS task, again.task AS after_task, 100.0 * correct / images AS accuracy
      FROM compared
      CROSS JOIN evaluations USING (run)
      JOIN (SELECT run, task FROM tasks UNION ALL SELECT run, -1 FROM runs) AS again USING (run)
      WHERE untrained AND after_task = -1)
GROUP BY run, task;

CREATE TEMP TABLE seen AS
SELECT run
-- each asked: , iif({images}, {sql}, NULL) AS {name}
FROM (SELECT run, tasks, NULL AS task, after_task, 100.0 * sum(correct) / sum(images) AS accuracy
      FROM compared
      CROSS JOIN evaluations USING (run)
      WHERE accumulates AND after_task NOT BETWEEN 0 AND evaluations.task - 1
      GROUP BY run, after_task)
GROUP BY run;

CREATE UNIQUE INDEX temp.seen_run ON seen (run);

CREATE TEMP TABLE of_run (run INTEGER PRIMARY KEY
-- each asked: , {name} REAL
);

INSERT INTO of_run
SELECT of_task.run
-- each asked: , CASE WHEN count(of_task.{name}) = count(*) - {skips} THEN coalesce(seen.{name}, avg(of_task.{name})) END
FROM of_task
LEFT JOIN seen USING (run)
GROUP BY of_task.run
HAVING count(*) = tasks;

UPDATE compared SET complete = true WHERE run IN (SELECT run FROM of_run);

-- each asked: INSERT INTO measured SELECT configuration, place, 0, seed, of_run.{name} FROM request JOIN metric ON name = '{name}' JOIN of_run JOIN compared USING (run) WHERE of_run.{name} IS NOT NULL AND only_dataset IS NULL;

-- each asked: INSERT OR IGNORE INTO measured SELECT configuration, metric.place, dataset.place, seed, of_task.{name} FROM request JOIN metric ON metric.name = '{name}' CROSS JOIN of_task CROSS JOIN compared USING (run) CROSS JOIN tasks USING (run, task) JOIN dataset ON dataset.name = tasks.name WHERE (datasets OR only_dataset IS NOT NULL) AND of_task.{name} IS NOT NULL AND complete AND coalesce(only_dataset, dataset.name) = dataset.name;
-- === contexts
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

-- Said is what tells a context from others that are alike in all that is said before; other settings are counted.
CREATE TEMP TABLE context AS
WITH first AS MATERIALIZED (
    SELECT context, configuration, tests, min(grp) FROM configuration GROUP BY context
), words AS (
    SELECT context, tests, setting AS word, key,
           row_number() OVER (PARTITION BY context ORDER BY key NOT IN (SELECT key FROM telling),
                                                            key IN (SELECT key FROM told WHERE content), key) AS place
    FROM first
    CROSS JOIN told USING (configuration)
    JOIN varied USING (key)
    WHERE NOT chosen
    UNION ALL
    SELECT context, tests, tests, NULL, 1e9 FROM first
), preceded AS (
    SELECT *, coalesce(group_concat(word, char(31)) OVER (PARTITION BY context ORDER BY place
                                                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), '') AS before
    FROM words
), compared AS MATERIALIZED (
    SELECT *, min(word) OVER same <> max(word) OVER same AS tells FROM preceded WINDOW same AS (PARTITION BY place, before)
), unsaid AS (
    SELECT count(*) AS count FROM (SELECT 1 FROM compared WHERE key IS NOT NULL GROUP BY key HAVING NOT max(tells))
)
SELECT context, coalesce(group_concat(word, ', ') FILTER (WHERE tells), '')
                || iif(count > 0, ', and ' || count || ' more that differ alike', '') AS name, tests
FROM (SELECT * FROM compared ORDER BY context, place)
CROSS JOIN unsaid
GROUP BY context;

INSERT INTO note (note)
SELECT 'every run has ' || iif((SELECT count(*) FROM asked) = 1, (SELECT key FROM asked) || ' = ', '') || min(name)
       || ': there is nothing to compare it with'
FROM configuration
HAVING count(DISTINCT name) = 1;

-- What the runs of groups with one name did, where the groups differ in it: a difference in accuracy may be one of dose.
INSERT INTO note (note)
WITH done AS MATERIALIZED (
    SELECT name, grp, compared.run AS run, trainable_parameters AS parameters,
           (SELECT sum(iterations) FROM timings WHERE timings.run = compared.run AND phase = 'train') AS iterations,
           (SELECT count(*) FROM expert_events AS e WHERE e.run = compared.run AND event = 'merge') AS merges,
           (SELECT count(*) FROM expert_events AS e WHERE e.run = compared.run AND event = 'skip') AS skips
    FROM configuration
    JOIN compared USING (configuration)
    JOIN chosen ON chosen.run = compared.run
    WHERE context IN (SELECT context FROM configuration GROUP BY context HAVING count(*) > 1)
), reasons AS (
    SELECT name, ' (' || group_concat(reason, ', ') || ')' AS reasons
    FROM (SELECT DISTINCT name, replace(reason, '_', ' ') AS reason FROM done JOIN expert_events USING (run) WHERE event = 'skip' ORDER BY 1, 2)
    GROUP BY name
), doses AS (
    SELECT 0 AS place, 'merges' AS what, name, min(grp) AS grp, avg(merges) AS dose, '' AS why FROM done GROUP BY name
    UNION ALL
    SELECT 1, 'skipped merges', name, min(grp), avg(skips), coalesce(max(reasons), '') FROM done LEFT JOIN reasons USING (name) GROUP BY name
    UNION ALL
    SELECT 2, 'iterations', name, min(grp), avg(iterations), '' FROM done GROUP BY name
    UNION ALL
    SELECT 3, 'trained parameters', name, min(grp), avg(parameters), '' FROM done GROUP BY name
), said AS (
    SELECT what || ': ' || iif(count(*) <= 12, group_concat(name || ' ' || shortest(round(dose, 1)) || why, ', '),
                               shortest(round(min(dose), 1)) || ' to ' || shortest(round(max(dose), 1))) AS list
    FROM (SELECT * FROM doses WHERE dose IS NOT NULL ORDER BY place, grp)
    GROUP BY place
    HAVING max(dose) > min(dose)
)
SELECT 'what the groups did per run differs: ' || group_concat(list, '; ') FROM said HAVING count(*) > 0;

-- A configuration has one name in all other tables.
INSERT INTO note (note)
SELECT 'in other tables ' || group_concat(name || ' is "' || label || '"', ', ')
FROM (SELECT DISTINCT name, label
      FROM (SELECT configuration.name AS name, label, grp
            FROM configuration
            JOIN chosen ON chosen.run = configuration.run
            JOIN labels ON hash = suite_hash
            WHERE context IN (SELECT context FROM configuration GROUP BY context HAVING count(*) > 1)
            ORDER BY grp)
      WHERE name <> label)
HAVING count(*) BETWEEN 1 AND 12;

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
-- === questions
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
