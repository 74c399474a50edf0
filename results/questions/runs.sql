-- title: what has been run: suite, settings, seed, status, dates, folder of the adapters
SELECT run, row, suite, setting, method, policy, selector, selection, task_order AS "order", model, seed,
       iif(status = 'running' AND is_gone(run, host), 'process is gone', status) AS status, started, finished, message,
       folder, host
FROM chosen
JOIN names USING (run)
ORDER BY run
