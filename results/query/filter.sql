-- Which runs a filter chooses, what they are called, and what they were told.
-- === filter
-- title: the runs that a filter chooses
-- include: wanted
SELECT run, suite, suite_hash, settings_hash, setting, method, policy, selector, selection, task_order, model, backend, "precision",
       program_version, seed, tasks, trainable_parameters, status, message, started, finished, host, process, folder
FROM runs -- without the suite's text, which is long
WHERE run = coalesce(:run, run) AND (:runs IS NULL OR run IN (SELECT value FROM json_each('[' || :runs || ']')))
      AND (:seed IS NULL OR seed IN (SELECT value FROM json_each('[' || :seed || ']')))
      AND suite = coalesce(:suite, suite) AND setting = coalesce(:setting, setting) AND method = coalesce(:method, method)
      AND policy = coalesce(:policy, policy) AND selector = coalesce(:selector, selector)
      AND status = coalesce(:status, status) AND (:since IS NULL OR started >= :since)
      AND (:before IS NULL OR started < :before)
      AND (:dataset IS NULL OR EXISTS (SELECT 1 FROM tasks WHERE tasks.run = runs.run AND name = :dataset))
      AND NOT EXISTS (SELECT 1 FROM wanted WHERE (runs.run, wanted.key, wanted.value) NOT IN (SELECT run, key, value FROM fitting))
ORDER BY run
-- refuse:
-- What a filter names and no run has: a sentence or, of a name, what is expected (null: the names), its kind, it, and a name that
-- there is.
-- include: wanted
, given (kind, name) AS (
    SELECT 'run', trim(value) FROM json_each('[' || replace(json_quote(:runs), ',', '","') || ']') WHERE :runs IS NOT NULL
    UNION ALL
    SELECT 'seed', trim(value) FROM json_each('[' || replace(json_quote(:seed), ',', '","') || ']') WHERE :seed IS NOT NULL
    UNION ALL
    SELECT 'setting of --where', key FROM wanted WHERE NOT EXISTS (SELECT 1 FROM settings WHERE settings.key = wanted.key)
    UNION ALL
    VALUES ('suite', :suite), ('setting', :setting), ('method', :method), ('policy', :policy), ('selector', :selector),
           ('dataset', :dataset)
), known (kind, name) AS (
    SELECT kind, CASE kind WHEN 'run' THEN CAST(run AS TEXT) WHEN 'seed' THEN CAST(seed AS TEXT) WHEN 'suite' THEN suite
                           WHEN 'setting' THEN setting WHEN 'method' THEN method WHEN 'policy' THEN policy ELSE selector END
    FROM (SELECT DISTINCT kind FROM given WHERE name IS NOT NULL AND kind NOT IN ('dataset', 'setting of --where'))
    CROSS JOIN runs
    UNION
    SELECT 'dataset', name FROM tasks WHERE :dataset IS NOT NULL
    UNION
    SELECT kind, key FROM (SELECT DISTINCT kind FROM given WHERE kind = 'setting of --where') CROSS JOIN settings
), unknown AS (
    SELECT kind, name
    FROM given
    WHERE name IS NOT NULL AND (kind, name) NOT IN (SELECT kind, name FROM known)
          AND (kind IN (SELECT kind FROM known) OR kind LIKE '% of %')
    LIMIT 1
), sentences (sentence) AS (
    SELECT '--' || option || ': expected a time like 2026-01-31 or 2026-01-31T12:00 (UTC), found "' || substr(time, 1, 40) || '"'
    FROM (SELECT 'since' AS option, :since AS time UNION ALL SELECT 'before', :before)
    WHERE time <> coalesce(substr(strftime('%Y-%m-%dT%H:%M:%SZ', time || iif(length(time) = 7, '-01', ''), '+0 days'), 1,
                                  length(time)), '')
    UNION ALL
    SELECT '--where: expected key=value, found "' || substr(:where, 1, 60) || '"' FROM wanted WHERE key = ''
    UNION ALL
    SELECT '--where: no run has ' || key || ' = ' || substr(value, 1, 60) || '; expected one of: '
           || substr((SELECT group_concat(DISTINCT value) FROM settings WHERE settings.key = wanted.key), 1, 300)
    FROM wanted
    WHERE NOT EXISTS (SELECT 1 FROM fitting WHERE fitting.key = wanted.key AND fitting.value = wanted.value)
          AND EXISTS (SELECT 1 FROM settings WHERE settings.key = wanted.key)
)
SELECT sentence AS expected, NULL AS kind, NULL AS name, NULL AS known FROM sentences
UNION ALL
SELECT iif(kind LIKE '% of %', 'a key of the suite such as merge.every', NULL), kind, unknown.name, known.name
FROM unknown
LEFT JOIN known USING (kind)
-- === labels
-- What tables and figures call the configurations of `chosen`, and the board on which each is ranked (those of one scope, most of them
-- first; null: no task was recorded). A label is a name (view names) and, of configurations that have one name and learn
-- the same tasks, what tells them apart: the words in which some differ that are alike in all words before. First come columns of
-- runs, then settings (run_values of the runs of `alike`, `labels-told`), at last a digest.
DROP VIEW IF EXISTS temp.alike;
DROP TABLE IF EXISTS temp.labels;
CREATE TEMP TABLE labels (hash TEXT PRIMARY KEY, run INTEGER, learns TEXT, label TEXT, scope TEXT, board INTEGER);
INSERT INTO labels (hash, run, learns, label, scope)
SELECT suite_hash, first.run, (SELECT group_concat(name, char(31))
                         FROM (SELECT name FROM tasks WHERE tasks.run = first.run ORDER BY name)), row, scope
FROM (SELECT suite_hash, min(run) AS run, coalesce(min(run) FILTER (WHERE status = 'finished'), min(run)) AS whole
      FROM chosen
      GROUP BY suite_hash) AS first
JOIN names USING (run)
JOIN scopes ON scopes.run = whole
ORDER BY first.run;

UPDATE labels SET board = boards.board
FROM (SELECT scope, row_number() OVER (ORDER BY count(*) DESC, scope) AS board FROM labels WHERE scope IS NOT NULL GROUP BY scope) AS boards
WHERE boards.scope = labels.scope;

CREATE TEMP VIEW alike AS
SELECT rowid AS place, * FROM (SELECT rowid, *, count(*) OVER (PARTITION BY learns, label) AS count FROM labels) WHERE count > 1;
-- === labels-told
-- Tells apart what is alike after `labels`: words are columns of the run, then settings whose difference counts.
WITH varied AS MATERIALIZED (
    SELECT place, keys.key AS key, value, content
    FROM (SELECT key FROM run_values
          WHERE key <> 'run.row'
          GROUP BY key
          HAVING count(DISTINCT value) > 1 OR count(*) < (SELECT count(*) FROM valued)) AS keys
    CROSS JOIN valued
    LEFT JOIN run_values USING (place, key)
), said AS (
    SELECT hash, learns, word.key AS place, word.value AS word
    FROM alike
    JOIN runs USING (run)
    JOIN json_each(json_array(label, suite, setting, method, policy, selector, selection, 'order ' || task_order, model,
                              "precision")) AS word
    UNION ALL
    SELECT hash, learns, key, key || '=' || coalesce(value, 'none')
    FROM varied
    JOIN labels ON labels.rowid = place
    WHERE key IN (SELECT key FROM varied
                  WHERE content OR NOT is_incidental(key, value)
                  GROUP BY key
                  HAVING count(DISTINCT value) > 1 OR count(*) < (SELECT count(*) FROM valued))
), preceded AS (
    SELECT *, group_concat(word, char(31)) OVER (PARTITION BY hash ORDER BY place
                                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM said
), compared AS (
    SELECT *, min(word) OVER same <> max(word) OVER same AS tells FROM preceded WINDOW same AS (PARTITION BY place, learns, before)
)
UPDATE labels SET label = telling.label
FROM (SELECT hash, group_concat(word, ', ') AS label
      FROM (SELECT * FROM compared
            WHERE word <> '' AND (tells OR place = 0)
            ORDER BY hash, place)
      GROUP BY hash) AS telling
WHERE telling.hash = labels.hash;

UPDATE labels SET label = label || ', ' || substr(hash, 1, 8) WHERE hash IN (SELECT hash FROM alike);
-- === contents
-- The settings of the runs of `valued` (place, run), and the contents of their inputs as settings among them: run_values. A
-- content is called by its path in the suite, with the beginning of its digest if another content has that path already.
DROP TABLE IF EXISTS temp.run_values;
CREATE TEMP TABLE run_values (place INTEGER, key TEXT, value TEXT, content INTEGER, PRIMARY KEY (place, key)) WITHOUT ROWID;
INSERT INTO run_values
SELECT place, key, iif(typeof(value) = 'real', shortest(value), value), 0
FROM valued
CROSS JOIN settings USING (run);

INSERT OR REPLACE INTO run_values
WITH kinds (key, kind, path, file) AS ( -- path: the key that names it; file: without a digest its path is all that is known
    VALUES ('model.weights', 'weights', 'model.weights', 1), ('model.configuration', 'configuration', 'model.weights', 0),
           ('model.vocabulary', 'vocabulary', 'model.vocabulary', 1), ('data.root', 'train', 'data.root', 0),
           ('prompts', 'prompts', 'data.root', 0), ('test images', 'test', 'data.root', 0)
), digests AS ( -- by name, whatever the order in which the tasks are trained
    SELECT place, kind, iif(count(*) = 1, max(digest), digest(name || ' ' || digest)) AS digest
    FROM (SELECT place, kind, digest, coalesce(name, '') AS name
          FROM valued CROSS JOIN inputs USING (run) LEFT JOIN tasks USING (run, task) ORDER BY place, kind, 4, task)
    GROUP BY place, kind
), named AS (
    SELECT valued.place AS place, kinds.key AS key, digest,
           CASE WHEN digest IS NOT NULL OR file THEN coalesce(value, 'not set')
                WHEN kinds.kind = 'configuration' AND value = 'scratch' THEN 'none' ELSE 'not recorded' END AS name
    FROM valued
    CROSS JOIN kinds
    LEFT JOIN run_values ON run_values.place = valued.place AND run_values.key = kinds.path
    LEFT JOIN digests ON digests.place = valued.place AND digests.kind = kinds.kind
), firsts AS ( -- the run that has a content first gives it its name
    SELECT key, digest, name, min(place) AS place
    FROM named
    GROUP BY key, digest, iif(digest IS NULL, name, '')
), labels AS (
    SELECT key, digest, name, row_number() OVER (PARTITION BY key, name ORDER BY place) AS number FROM firsts
)
SELECT named.place, key,
       labels.name || iif(number = 1, '', ' (' || coalesce(substr(labels.digest, 1, 12), 'not recorded') || ')'), 1
FROM named
JOIN labels USING (key)
WHERE labels.digest IS named.digest AND (named.digest IS NOT NULL OR labels.name = named.name);
