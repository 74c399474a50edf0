-- title: accuracies lie within the matrix and count the test images
SELECT 'evaluations' AS what, tasks.run AS run, 'task ' || tasks.task || ', after task ' || after_task AS "where",
       test_images || ' images, in a matrix of ' || runs.tasks || ' tasks'
           || iif(setting = 'class_incremental', ', of classes that were seen', '') AS expected, images || ' images' AS found
FROM runs
CROSS JOIN tasks USING (run)
CROSS JOIN evaluations USING (run, task)
WHERE images <> test_images OR max(after_task, tasks.task) >= runs.tasks
      OR (after_task BETWEEN 0 AND tasks.task - 1 AND setting = 'class_incremental')
