-- title: transfer, average, last and more of each run whose matrix is complete
SELECT run, suite, method, policy, seed, transfer, average, last, forgetting, backward_transfer, forward_transfer, gain,
       zero_shot
FROM chosen
JOIN metrics USING (run)
ORDER BY run
-- instead:
SELECT 'metrics-of-dataset' WHERE :dataset IS NOT NULL
-- note:
-- include: incomplete
