-- title: mean cosine between the class names of tasks that are parts of a dataset
-- empty: class names are compared where one dataset is cut into tasks
SELECT chosen.run AS run, tasks.task AS task, tasks.name AS name, other, others.name AS other_name, cosine
FROM chosen
JOIN tasks USING (run)
JOIN task_similarities USING (run, task)
JOIN tasks AS others ON others.run = chosen.run AND others.task = other
WHERE :dataset IS NULL OR tasks.name = :dataset
ORDER BY chosen.run, tasks.task, other
