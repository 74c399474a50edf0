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
