-- title: accuracies lie within the matrix and count the test images
-- expect: no rows
SELECT 'evaluations' AS what, tasks.run AS run,
       'task ' || tasks.task || ', after task ' || after_task AS "where",
       CASE WHEN images <> test_images THEN test_images || ' images'
            WHEN max(after_task, tasks.task) >= runs.tasks THEN runs.tasks || ' tasks'
            ELSE 'none: its classes have not been seen' END AS expected,
       CASE WHEN images <> test_images THEN images || ' images'
            WHEN max(after_task, tasks.task) >= runs.tasks THEN 'a cell outside'
            ELSE 'an accuracy' END AS found
FROM runs
CROSS JOIN tasks USING (run)
CROSS JOIN evaluations USING (run, task)
WHERE images <> test_images OR max(after_task, tasks.task) >= runs.tasks
      OR (after_task BETWEEN 0 AND tasks.task - 1 AND setting = 'class_incremental')
