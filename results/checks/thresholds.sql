-- title: every task of a selector by errors has its threshold
SELECT 'thresholds' AS what, run, 'rows' AS "where", iif(by_errors, runs.tasks, 0) AS expected,
       (SELECT count(*) FROM selector_thresholds AS own WHERE own.run = runs.run) AS found
FROM (SELECT *, selector NOT IN ('none', 'oracle') AS by_errors FROM runs) AS runs
WHERE found <> expected AND (status = 'finished' OR NOT by_errors)
UNION ALL
SELECT 'thresholds', run, 'task ' || task, iif("selector.threshold" <> 0, "selector.threshold", 'a distance'),
       coalesce(threshold, 'none')
FROM selector_thresholds JOIN facts USING (run)
WHERE threshold IS NULL OR (threshold < 0 AND "selector.kind" <> 'task_gaussian') -- -log of a density
      OR ("selector.threshold" <> 0 AND abs(threshold - "selector.threshold") > 1e-6 * abs(threshold))
