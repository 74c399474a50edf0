-- title: timings belong to a task's training and tests, and last for some time
SELECT 'times' AS what, run, phase || ', task ' || task AS "where", 'seconds of one of ' || tasks || ' tasks' AS expected,
       seconds AS found
FROM timings JOIN runs USING (run)
WHERE task >= tasks OR seconds < 0 OR seconds > 1e9 OR iterations < 0 OR images < 0
UNION ALL
SELECT 'times', run, 'train, task ' || task, last || ' iterations', total(timings.iterations) || ' iterations'
FROM plan JOIN timings USING (run, task)
WHERE phase = 'train' AND last = planned AND (SELECT count(*) FROM sessions WHERE sessions.run = plan.run) = 1
GROUP BY run, task
HAVING total(timings.iterations) <> last
