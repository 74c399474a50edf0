-- title: the same per task, with its images and how many were missing or unreadable
-- empty: no column of their accuracy matrix is whole; mtil query matrix shows what there is
SELECT run, suite, method, policy, seed, task, name
-- each: , {name}
       , training_images, test_images, missing_images, unreadable_images
FROM chosen
JOIN task_metrics USING (run)
JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task
-- note:
-- include: incomplete
