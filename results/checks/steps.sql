-- title: a task has the steps that its settings say
SELECT 'steps' AS what, run, 'task ' || task || ', last step' AS "where", planned AS expected,
       coalesce(last, 'none') AS found
FROM plan JOIN runs USING (run)
WHERE last > planned OR (status = 'finished' AND last IS NOT planned)
UNION ALL -- the first, the last, and every log_every-th
SELECT 'steps', run, 'task ' || task || ', rows',
       last / "run.log_every" + ("run.log_every" > 1) + (last > 1 AND last % "run.log_every" > 0) AS expected, logged
FROM plan JOIN facts USING (run)
WHERE last = planned AND logged <> expected AND (SELECT count(*) FROM sessions WHERE sessions.run = plan.run) = 1
