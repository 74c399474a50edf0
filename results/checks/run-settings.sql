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
