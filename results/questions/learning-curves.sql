-- title: training loss of each configuration by task and iteration, means over seeds
-- empty: no loss was recorded
-- column: configuration,suite,method,policy once
-- column: loss,lowest,highest,balance_loss 4
-- block: configuration
SELECT substr(suite_hash, 1, 8) AS configuration, suite, method, policy, task, name, iteration, count(*) AS runs, mean(loss) AS loss,
       min(loss) AS lowest, max(loss) AS highest, mean(balance_loss) AS balance_loss, max(learning_rate) AS learning_rate
FROM chosen
CROSS JOIN steps USING (run)
JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
GROUP BY suite_hash, task, iteration
ORDER BY min(chosen.run) OVER (PARTITION BY suite_hash), suite_hash, task, iteration
