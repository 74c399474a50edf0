-- title: which classes which expert serves in the last test; with a dataset, block by block: class × expert
-- empty: experts are counted by class where evaluation.per_image keeps results and routers choose
SELECT run, task, name, block, class, class_name, expert, count, share, mean_gate
FROM chosen
JOIN class_usage USING (run)
ORDER BY run, task, block, class, expert
-- instead:
SELECT 'class-experts-of-dataset' WHERE :dataset IS NOT NULL
