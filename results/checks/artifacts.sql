-- title: a finished run has recorded its files, each its own
SELECT 'files' AS what, run, kind || ', task ' || task AS "where", 'a path, a size and a digest' AS expected,
       path || ', ' || bytes || ', ' || coalesce(digest, 'none') AS found
FROM artifacts
WHERE path = '' OR bytes <= 0 OR coalesce(length(digest), 0) <> 64 OR digest GLOB '*[^0-9a-f]*'
UNION ALL
SELECT 'files', max(run), kind || ', task ' || task, 'a file of its own', 'that of run ' || min(run)
FROM artifacts
WHERE path <> '' -- equal bytes are no fault: a setting may have had no effect
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
