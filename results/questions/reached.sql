-- column: * right 1
-- wide: title value

-- The last row of each run's accuracy matrix.
WITH
-- include: accuracies
SELECT run, after, title, value
FROM accuracies
WHERE after_task = (SELECT max(after_task) FROM lines WHERE lines.run = accuracies.run)
ORDER BY run, place
