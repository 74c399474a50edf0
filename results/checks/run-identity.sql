-- title: a run's identity is the digest of its settings and inputs
WITH kinds AS ( -- in the order in which a run names its inputs
    SELECT run, task, kind, digest,
           instr('weights configuration vocabulary reference_images reference_texts alexnet unrelated prompts train test',
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
