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
