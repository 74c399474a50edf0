-- title: transfer, average, last and more of each run whose matrix is complete
-- empty: their accuracy matrix is not whole; mtil query matrix shows what there is
-- column: name of-dataset
WITH
-- include: measured
SELECT run, row, suite, method, policy, seed, name
-- each: , {name}
FROM chosen
JOIN measured USING (run)
JOIN names USING (run)
ORDER BY run
-- note:
-- include: incomplete
