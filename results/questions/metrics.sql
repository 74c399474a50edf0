-- title: transfer, average, last and more of each run whose matrix is complete
-- empty: their accuracy matrix is not whole; mtil query matrix shows what there is
-- column: name of-dataset
WITH
-- include: measured
SELECT chosen.run AS run, label AS row, suite, method, policy, seed, name
-- each: , {name}
FROM chosen
JOIN measured USING (run)
JOIN labels ON labels.hash = chosen.suite_hash
ORDER BY run
-- note:
-- include: incomplete
