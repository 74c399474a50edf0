-- title: accuracy on each task after each task, a row per trained task
-- empty: no task was tested yet
-- column: run,suite,method,policy,seed once
-- column: row hidden
-- column: * right 1
-- block: run
-- wide: title value
WITH
-- include: accuracies
SELECT run, after_task AS row, suite, method, policy, seed, after, title, value
FROM accuracies
JOIN chosen USING (run)
ORDER BY run, row, place
