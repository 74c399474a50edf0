-- title: learning accuracy: on each task right after its own training, as means over tasks and seeds
-- empty: a task was not tested right after its training
-- column: learning_accuracy 1 highest
-- column: ± right 1

-- Riemer et al. (MER, ICLR 2019): the mean of a(j, j), what a method learns whatever it forgets later.
WITH learnt AS (
    SELECT run, avg(accuracy) AS accuracy
    FROM chosen
    JOIN matrix USING (run)
    WHERE task = after_task AND status = 'finished' AND (:dataset IS NULL OR name = :dataset)
    GROUP BY run
    HAVING count(*) = iif(:dataset IS NULL, max(tasks), 1)
)
SELECT row, suite, substr(suite_hash, 1, 8) AS configuration, count(*) AS runs, mean(accuracy) AS learning_accuracy,
       plus_minus(mean(accuracy), half_width(accuracy), 0, 100) AS "±"
FROM learnt
JOIN chosen USING (run)
JOIN names USING (run)
GROUP BY suite_hash
ORDER BY learning_accuracy DESC, suite_hash
