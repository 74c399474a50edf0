-- Runs: what they are, how far they are, and what they took.
-- === runs
-- title: what has been run: suite, settings, seed, status, dates, folder of the adapters; name and note (run.name, run.note)
SELECT run, row, (SELECT value FROM settings WHERE settings.run = chosen.run AND key = 'run.name') AS name, suite, setting, method, policy,
       selector, selection, task_order AS "order", model, seed,
       iif(status = 'running' AND is_gone(run, host), 'process is gone', status) AS status, started, finished, message,
       folder, host, (SELECT value FROM settings WHERE settings.run = chosen.run AND key = 'run.note') AS note
FROM chosen
JOIN names USING (run)
ORDER BY run
-- === sessions
-- title: the processes that worked on each run: program, command line, libraries and machine
SELECT run, session, sessions.started AS started, sessions.host AS host, sessions.program_version AS program_version,
       program_commit, command_line, compiler, libraries, cpu, gpu, driver
FROM chosen
JOIN sessions USING (run)
ORDER BY run, session
-- === inputs
-- title: what each run was computed from: files, their sizes and digests of their contents
SELECT run, task, name, kind, path, files, bytes, digest
FROM chosen
JOIN inputs USING (run)
LEFT JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task, kind
-- === counts
-- column: counts left

-- How many runs there are of each status, in one text.
SELECT coalesce(group_concat(count || ' ' || standing, ', '), 'no runs') AS counts
FROM (
    SELECT count(*) AS count, iif(status = 'running' AND is_gone(run, host), 'gone', status) AS standing
    FROM chosen
    GROUP BY standing
    ORDER BY standing = 'running' DESC, standing = 'gone' DESC, standing = 'finished' DESC, standing
)
-- === progress
-- column: task,step,left right
-- column: loss 3
-- column: images/s 0

-- A row per run that goes on: what it reports beside the database each second or, without a report, its last committed
-- step.
WITH last AS (
    SELECT run, task, iteration, loss, max(task * 4294967296 + iteration)
    FROM chosen
    JOIN steps USING (run)
    GROUP BY run
), report AS (
    SELECT chosen.*, is_gone(run, host) AS gone,
           CASE WHEN json_valid(live(run, host)) THEN live(run, host)
                ELSE json_object('activity', iif(task IS NULL, NULL, 'train'), 'subject', name, 'task', task + 1,
                                 'tasks', tasks, 'step', iteration, 'loss', loss) END AS said
    FROM chosen
    LEFT JOIN last USING (run)
    LEFT JOIN tasks USING (run, task)
), number AS (
    SELECT *, json_extract(said, '$.task') AS part, json_extract(said, '$.tasks') AS parts,
           json_extract(said, '$.step') AS reached, json_extract(said, '$.steps') AS steps,
           json_extract(said, '$.images_per_second') AS speed, min(json_extract(said, '$.done'), 1) AS share,
           CAST(json_extract(said, '$.seconds_left') + 0.5 AS INTEGER) AS seconds
    FROM report
)
SELECT run, suite, policy, seed,
       iif(part > 0, part || iif(parts > 0, '/' || parts, ''), NULL) AS task,
       iif(gone, 'process is gone', rtrim(json_extract(said, '$.activity') || ' '
                                          || coalesce(json_extract(said, '$.subject'), ''))) AS doing,
       iif(reached > 0, reached || iif(steps > 0, '/' || steps, ''), NULL) AS step,
       iif(share > 0, substr('██████████', 1, CAST(share * 10 AS INTEGER))
                      || substr('░░░░░░░░░░', 1, 10 - CAST(share * 10 AS INTEGER))
                      || printf(' %2d%%', share * 100), NULL) AS done,
       CASE WHEN gone OR NOT coalesce(json_extract(said, '$.seconds_left') >= 0, 0) THEN NULL
            WHEN seconds < 60 THEN seconds || ' s'
            WHEN seconds < 3600 THEN printf('%d min %02d s', seconds / 60, seconds % 60)
            ELSE printf('%d h %02d min', seconds / 3600, seconds / 60 % 60) END AS left,
       nullif(json_extract(said, '$.loss'), 0) AS loss,
       iif(speed > 0 AND NOT gone, speed, NULL) AS "images/s", method
FROM number
ORDER BY run
-- === reached
-- column: * right 1
-- wide: title value

-- The last row of each run's accuracy matrix.
-- include: accuracies
SELECT run, after, title, value
FROM accuracies
WHERE after_task = (SELECT max(after_task) FROM lines WHERE lines.run = accuracies.run)
ORDER BY run, place
-- === end-of-run
-- column: row hidden
-- column: * right 1
-- wide: title value

-- The end of a run: its accuracy matrix and, with more than one task and a whole matrix, Transfer, Average and Last below it.
-- include: accuracies
, of_run AS MATERIALIZED (
    SELECT metrics.* FROM chosen JOIN metrics USING (run) WHERE tasks > 1
), of_tasks AS MATERIALIZED (
    SELECT name, task_metrics.* FROM of_run JOIN task_metrics USING (run) JOIN tasks USING (run, task)
), measured (row, title, name, value) AS (
    SELECT NULL, NULL, NULL, NULL WHERE false
-- each main: UNION ALL SELECT 1e6 + {place}, '{title}', name, of_tasks.{name} FROM of_run JOIN of_tasks USING (run) WHERE of_run.{name} IS NOT NULL
-- each main: UNION ALL SELECT 1e6 + {place}, '{title}', NULL, {name} FROM of_run WHERE {name} IS NOT NULL
)
SELECT row, after, title, value
FROM (
    SELECT after_task AS row, after, title, value, place FROM accuracies
    UNION ALL
    SELECT row, measured.title, columns.title, measured.value, place
    FROM measured
    JOIN columns ON name IS iif(place < 9e15, columns.title, NULL)
)
ORDER BY row, place
-- === digest
-- title: one digest over the accuracies of the finished runs: whether two databases hold the same results

-- Runs by what they are and not by their numbers, so that the order in which they were run does not matter.
SELECT count(*) AS accuracies, digest(line) AS digest
FROM (
    SELECT suite_hash || ' ' || seed || ' ' || after_task || ' ' || task || ' ' || correct || ' ' || images AS line
    FROM chosen
    JOIN evaluations USING (run)
    WHERE status = 'finished'
    ORDER BY suite_hash, seed, after_task, task
)
-- === time
-- title: where the time of each run went, and how fast it was
SELECT run, phase, seconds, iterations, images, seconds_per_iteration, images_per_second, peak_bytes
FROM chosen
JOIN throughput USING (run)
ORDER BY run, phase
-- === hours
-- title: hours of each configuration, by phase, and of all chosen runs together
-- empty: no phase has ended yet
-- column: place hidden
-- column: hours_per_run,train,selector,features,evaluate,hours 3
-- block: place
WITH spent AS (
    SELECT suite_hash, run, phase, seconds / 3600 AS hours FROM chosen JOIN timings USING (run)
), sums AS (
    SELECT 0 AS place, suite_hash AS hash, * FROM spent UNION ALL SELECT 1, NULL, * FROM spent
)
SELECT place, iif(place, 'all', label) AS row, count(DISTINCT sums.run) AS runs,
       sum(hours) FILTER (WHERE phase = 'train') AS train, sum(hours) FILTER (WHERE phase = 'selector') AS selector,
       sum(hours) FILTER (WHERE phase = 'features') AS features, sum(hours) FILTER (WHERE phase = 'evaluate') AS evaluate,
       sum(hours) AS hours, sum(hours) / count(DISTINCT sums.run) AS hours_per_run
FROM sums
LEFT JOIN labels USING (hash)
GROUP BY place, hash
ORDER BY place, labels.run
-- === cost
-- title: what each configuration costs: parameters, operations, time, memory, beside a baseline row, by machine
-- empty: no run has finished
-- column: suite,machine once
-- column: sheet hidden
-- column: runs,pairs extra
-- column: * right 2
-- column: parameters 0
-- column: "s/step","s/step ±","GFLOP/step","GFLOP/image","parameters×","GFLOP/step×","GFLOP/image×" 3
-- column: "images/s","images/s ±","peak_MiB","peak_MiB ±" 1
-- block: sheet
-- wide: title value
-- include: cost-baselines
, priced AS MATERIALIZED (
    SELECT run, seed, number, board, (board, number) IN (SELECT board, number FROM bases) AS based FROM own
),
-- include: costs
SELECT board || ' ' || coalesce(machine, '') AS sheet, suite, coalesce(machine, 'several or unknown machines') AS machine, label AS row,
       runs, pairs, title, value
FROM entries
JOIN (SELECT DISTINCT number, suite, label FROM own) USING (number)
WHERE title IN (SELECT title FROM entries WHERE value IS NOT NULL)
ORDER BY board, entries.machine IS NULL, min(number) OVER (PARTITION BY board, entries.machine), entries.machine, number, place, side
-- refuse:
-- include: cost-baselines
SELECT 'baseline "' || :baseline || '": expected the row of one configuration with finished runs; found '
       || (SELECT count(DISTINCT number) FROM own WHERE :baseline IN (row, label)) || ' of them'
WHERE :baseline IS NOT NULL AND NOT EXISTS (SELECT 1 FROM bases)
-- note:
-- include: cost-baselines
, unclear AS (
    SELECT count(*) AS runs FROM own JOIN costs USING (run) WHERE machine IS NULL AND coalesce(seconds_per_step, peak_bytes) IS NOT NULL
)
SELECT '×: means over the seeds that a configuration and ' || group_concat(DISTINCT label) || ' both have, of time and memory on one '
       || 'machine; operations are counted from dimensions'
       || (SELECT iif(runs > 0, '. Left out: times and memory of runs on unknown or several machines: ' || runs, '')
           FROM unclear)
FROM own
JOIN bases USING (number)
-- === task-time
-- title: seconds that each task took, by phase
-- empty: no phase has ended yet
-- column: run,suite,method,policy,seed once
-- column: train,selector,features,evaluate,total 1
-- block: run
SELECT run, suite, method, policy, seed, timings.task AS task, coalesce(name, 'zero-shot') AS name,
       sum(seconds) FILTER (WHERE phase = 'train') AS train, sum(seconds) FILTER (WHERE phase = 'selector') AS selector,
       sum(seconds) FILTER (WHERE phase = 'features') AS features, sum(seconds) FILTER (WHERE phase = 'evaluate') AS evaluate,
       sum(seconds) AS total
FROM chosen
JOIN timings USING (run)
LEFT JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
GROUP BY run, timings.task
ORDER BY run, timings.task
