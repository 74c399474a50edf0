-- title: only runs that may skip steps have skipped any, and no more than a task has
SELECT 'skipped steps' AS what, run, 'task ' || task AS "where",
       iif("training.on_nan" = 'skip', 'up to ' || planned, 'none without training.on_nan: skip') AS expected, steps AS found
FROM skipped_steps
JOIN facts USING (run)
LEFT JOIN plan USING (run, task)
WHERE "training.on_nan" IS NOT 'skip' OR steps > planned
