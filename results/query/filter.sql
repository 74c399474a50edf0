-- title: the runs that a filter chooses
WITH
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
WITH
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
