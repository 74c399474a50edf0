-- What a run says of itself: the file, settings, identity, tasks, times and kept files.
-- === schema
-- title: tables, views, indices and triggers are this program's
SELECT 'schema' AS what, 0 AS run, name AS "where", 'this program''s' AS expected,
       iif(found.sql IS NULL, 'none', 'another definition') AS found
FROM own_schema LEFT JOIN found_schema AS found USING (name)
WHERE found.sql IS NOT own_schema.sql
UNION ALL
SELECT 'schema', 0, name, 'none', 'one'
FROM found_schema
WHERE name NOT IN (SELECT name FROM own_schema)
-- === integrity
-- title: SQLite reads every page
SELECT 'integrity' AS what, 0 AS run, 'file' AS "where", 'ok' AS expected, integrity_check AS found
FROM pragma_integrity_check
WHERE integrity_check <> 'ok'
-- === foreign-keys
-- title: every row belongs to a row of its parent
SELECT 'foreign keys' AS what, 0 AS run, "table" AS "where", 'a row of ' || parent AS expected,
       'none, for ' || count(*) || ' rows' AS found
FROM pragma_foreign_key_check
GROUP BY "table", parent
-- === run-columns
-- title: the columns of runs are what their settings say
WITH files AS ( -- the file of the weights without its folders
    SELECT facts.*, method, policy, selector, selection, setting, task_order, model, tasks, backend, "precision", seed,
           replace("model.weights", rtrim("model.weights", replace("model.weights", '/', '')), '') AS file,
           replace(trim("data.order", '[]'), '"', '') AS list, ', ' || trim("run.seeds", '[]') || ',' AS seeds
    FROM facts
    JOIN runs USING (run)
    WHERE "method.name" IS NOT NULL
), stems AS (
    SELECT *, rtrim(file, replace(file, '.', '')) AS stem FROM files -- with its last point
), said AS MATERIALIZED (
    SELECT *, iif("method.imported" = 'true', 'external', iif(length(stem) > 1, substr(stem, 1, length(stem) - 1), file))
               AS said_model,
           iif("selector.kind" IN ('none', 'oracle'), "selector.kind", coalesce("selector.decision", 'none')) AS said_selection,
           CASE iif("data.shared_classes" = 'true', 'shared', "evaluation.label_space") WHEN 'shared' THEN 'domain_incremental'
                WHEN 'all' THEN 'x_tail' WHEN 'seen' THEN 'class_incremental' WHEN 'open' THEN 'open_domain'
                ELSE iif("data.shots" > 0 OR "data.task_shots" GLOB '*[1-9]*', 'few_shot', 'full_shot') END AS said_setting,
           coalesce("data.order_name", CASE list
               WHEN 'aircraft, caltech101, cifar100, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397'
               THEN 'I'
               WHEN 'stanford_cars, food, mnist, oxford_pet, flowers, sun397, aircraft, caltech101, dtd, eurosat, cifar100'
               THEN 'II' ELSE list END) AS said_order,
           iif("data.split_by" IN ('labels', 'order'), "data.parts" + coalesce("data.first" > 0, 0),
               length(list) - length(replace(list, ',', '')) + 1) AS said_tasks
    FROM stems
), pairs (run, name, expected, found) AS (
    SELECT run, 'method', "method.name", method FROM said
    UNION ALL SELECT run, 'policy', coalesce("merge.policy", 'none'), policy FROM said
    UNION ALL SELECT run, 'selector', coalesce("selector.kind", 'none'), selector FROM said
    UNION ALL SELECT run, 'selection', said_selection, selection FROM said
    UNION ALL SELECT run, 'setting', said_setting, setting FROM said
    UNION ALL SELECT run, 'order', said_order, task_order FROM said
    UNION ALL SELECT run, 'model', said_model, model FROM said
    UNION ALL SELECT run, 'tasks', said_tasks, tasks FROM said
    UNION ALL SELECT run, 'backend', coalesce(nullif("run.backend", 'auto'), backend), backend FROM said
    UNION ALL SELECT run, 'precision', coalesce(nullif("run.precision", 'auto'), "precision"), "precision" FROM said
    UNION ALL SELECT run, 'seed', iif(seeds GLOB '*..*' OR instr(seeds, ' ' || seed || ','), seed, trim(seeds, ', ')), seed FROM said
)
SELECT 'runs' AS what, run, name AS "where", expected, found
FROM pairs
WHERE expected IS NOT found
-- === run-identity
-- title: a run's identity is the digest of its settings and inputs
WITH kinds AS ( -- in the order in which a run names its inputs
    SELECT run, task, kind, digest,
           instr('weights configuration vocabulary reference_images reference_texts files alexnet unrelated prompts train test',
                 kind) AS place
    FROM inputs
), lines AS (
    SELECT run, -2 AS task, 0 AS place, 'settings ' || settings_hash AS line FROM runs
    UNION ALL
    SELECT run, task, place, task || ' ' || kind || ' ' || digest FROM kinds
    ORDER BY run, task, place
)
SELECT 'identity' AS what, run, 'suite_hash' AS "where", digest(line) AS expected, suite_hash AS found
FROM lines
JOIN runs USING (run)
GROUP BY run
HAVING digest(line) <> suite_hash
-- === run-seeds
-- title: two seeds do not train alike
SELECT 'seeds' AS what, max(run) AS run, 'steps' AS "where", 'losses of its own' AS expected,
       'those of run ' || min(run) AS found
FROM (SELECT run, total(loss) AS losses, count(loss) AS count FROM steps GROUP BY run)
JOIN runs USING (run)
JOIN facts USING (run)
WHERE count > 1 AND trained
GROUP BY suite_hash, losses, count
HAVING count(*) > 1
-- === run-settings
-- title: every run has its settings, and its program is that of its first session
SELECT 'settings' AS what, run, 'rows' AS "where", 'the settings of the run' AS expected, 'none' AS found
FROM runs
WHERE NOT EXISTS (SELECT 1 FROM settings WHERE settings.run = runs.run)
UNION ALL
SELECT 'runs', run, 'program_version', min(sessions.program_version), runs.program_version
FROM runs JOIN sessions USING (run)
GROUP BY run
HAVING sum(sessions.program_version = runs.program_version) = 0
UNION ALL
SELECT 'runs', run, 'backend', 'cpu: no session used a GPU', backend
FROM runs JOIN sessions USING (run)
WHERE backend <> 'cpu'
GROUP BY run
HAVING count(gpu) = 0
-- === run-times
-- title: a run ends after it began, within the status that says so
SELECT 'runs' AS what, run, 'status ' || status AS "where",
       iif(status = 'running', 'no time of its end', 'the time of its end') AS expected,
       coalesce(finished, 'none') AS found
FROM runs
WHERE (status = 'running') <> (finished IS NULL)
UNION ALL
SELECT 'times', run, 'end', 'after ' || started, finished
FROM runs
WHERE finished < started OR julianday(started) IS NULL OR (finished IS NOT NULL AND julianday(finished) IS NULL)
UNION ALL
SELECT 'times', run, 'session ' || session, 'from ' || runs.started || coalesce(' to ' || finished, ''), sessions.started
FROM sessions JOIN runs USING (run)
WHERE sessions.started < runs.started OR sessions.started > finished OR julianday(sessions.started) IS NULL
-- === settings
-- title: settings are what the suite's text says, and settings_hash is theirs
SELECT 'settings' AS what, run, key AS "where", said.value AS expected, coalesce(settings.value, 'none') AS found
FROM told
JOIN suites USING (first)
CROSS JOIN said USING (first)
LEFT JOIN settings USING (run, key)
WHERE (hash IS NOT NULL OR settings.run IS NOT NULL)
  AND CASE typeof(settings.value) WHEN 'null' THEN 0
                                  WHEN 'real' THEN settings.value = CAST(said.value AS REAL)
                                  ELSE CAST(settings.value AS TEXT) = said.value END IS FALSE
UNION ALL
SELECT 'settings', run, key, 'none, as in suite_text', settings.value
FROM told
JOIN suites USING (first)
CROSS JOIN settings USING (run)
LEFT JOIN said USING (first, key)
WHERE hash IS NOT NULL AND said.first IS NULL
UNION ALL
SELECT 'identity', run, 'settings_hash', hash, settings_hash
FROM told
JOIN suites USING (first)
JOIN runs USING (run)
WHERE hash <> settings_hash
UNION ALL
SELECT 'settings', run, 'suite_text', 'a suite', json_extract(said, '$.refused')
FROM told
JOIN suites USING (first)
WHERE json_extract(said, '$.refused') IS NOT NULL
-- === inputs
-- title: runs that read the same test images have as many, with as many classes
WITH parts AS ( -- a dataset that was cut into tasks is one input of the run
    SELECT inputs.run AS run, inputs.task AS task, kind, digest, files, sum(test_images) AS test,
           sum(training_images) AS train, sum(missing_images + unreadable_images) AS absent,
           iif("data.shared_classes" = 'true', NULL, sum(classes)) AS classes, -- shared ones are those of all tasks
           count(*) AS tasks, max(test_digest) AS images
    FROM inputs
    JOIN facts USING (run)
    JOIN tasks ON tasks.run = inputs.run AND inputs.task IN (-1, tasks.task)
    WHERE kind IN ('train', 'test')
    GROUP BY inputs.run, inputs.task, kind
)
SELECT 'inputs' AS what, run, 'task ' || task || ', ' || kind AS "where", files || ' images' AS expected,
       iif(kind = 'test', test, train) || ' images' AS found
FROM parts JOIN facts USING (run)
WHERE files > 1 AND absent = 0 AND task >= 0 AND iif(kind = 'test', test <> files, train > files AND "data.shots" = 0
                                                               AND "data.task_shots" IS NULL)
UNION ALL
SELECT 'inputs', max(run), 'task ' || max(task) || ', ' || kind, min(test) || ' images, as in run ' || min(run),
       max(test) || ' images'
FROM parts
WHERE kind = 'test'
GROUP BY digest, tasks, absent
HAVING min(test) <> max(test) OR min(classes) <> max(classes) OR (tasks = 1 AND min(images) <> max(images))
-- === tasks
-- title: a run has its tasks, in the order of its settings, with their classes
SELECT 'tasks' AS what, run, 'rows' AS "where", runs.tasks AS expected,
       (SELECT count(*) FROM tasks WHERE tasks.run = runs.run) AS found
FROM runs
WHERE status = 'finished' AND found <> runs.tasks
UNION ALL
SELECT 'tasks', run, 'task ' || task, 'one of ' || runs.tasks, 'no such task'
FROM tasks JOIN runs USING (run)
WHERE task >= runs.tasks
UNION ALL
SELECT 'tasks', run, 'names', list, found
FROM (SELECT facts.run AS run, replace(trim("data.order", '[]'), '"', '') AS list, group_concat(name, ', ') AS found
      FROM facts CROSS JOIN tasks USING (run) WHERE "data.split_by" IS 'none' GROUP BY facts.run)
JOIN runs USING (run)
WHERE status = 'finished' AND found <> list
UNION ALL -- named where results per image are kept, or one dataset was cut into tasks
SELECT 'classes', run, 'task ' || task, classes || ' classes',
       count(class) || ' classes' || coalesce(', the last ' || max(class), '')
FROM tasks LEFT JOIN task_classes USING (run, task)
WHERE test_digest IS NOT NULL -- else its data were not there
GROUP BY run, task
HAVING (count(class) <> classes OR max(class) >= classes)
       AND (run IN (SELECT run FROM facts WHERE "evaluation.per_image" <> 'none') OR run IN (SELECT run FROM task_classes)
            OR run IN (SELECT run FROM task_similarities))
-- === artifacts
-- title: a finished run has recorded its files, each its own
SELECT 'files' AS what, run, kind || ', task ' || task AS "where", 'a path, a size and a digest' AS expected,
       path || ', ' || bytes || ', ' || coalesce(digest, 'none') AS found
FROM artifacts
WHERE path = '' OR bytes <= 0 OR coalesce(length(digest), 0) <> 64 OR digest GLOB '*[^0-9a-f]*'
UNION ALL
SELECT 'files', max(run), kind || ', task ' || task, 'a file of its own', 'that of run ' || min(run)
FROM artifacts
WHERE path <> '' AND kind NOT GLOB 'imported *' -- equal bytes are no fault: a setting may have had no effect
GROUP BY path
HAVING count(DISTINCT run) > 1
UNION ALL
SELECT 'files', run, 'rows', iif("run.checkpoints" = 'all', 'files of every task', 'a file'), count(kind)
FROM facts JOIN runs USING (run) LEFT JOIN (SELECT * FROM artifacts WHERE kind IN ('adapters', 'weights')) USING (run)
WHERE status = 'finished' AND trained AND "run.checkpoints" <> 'none'
GROUP BY run
HAVING count(kind) < iif("run.checkpoints" = 'all' AND NOT joint, runs.tasks, 1)
UNION ALL -- as they are now
SELECT 'files', run, path, iif(state LIKE '% bytes' OR state = 'no file', bytes || ' bytes', digest), state
FROM kept_files
WHERE state <> 'missing' AND state IS NOT digest AND (length(digest) = 64 OR length(state) <> 64)
