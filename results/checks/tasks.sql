-- title: a run has its tasks, in the order of its settings, with their classes
SELECT 'tasks' AS what, run, 'rows' AS "where", runs.tasks AS expected,
       (SELECT count(*) FROM tasks WHERE tasks.run = runs.run) AS found
FROM runs
WHERE status = 'finished' AND found <> runs.tasks
UNION ALL
SELECT 'tasks', run, 'task ' || task, 'one of ' || runs.tasks, 'no such task'
FROM tasks JOIN runs USING (run)
WHERE task >= runs.tasks
UNION ALL
SELECT 'tasks', run, 'names', list, found
FROM (SELECT facts.run AS run, replace(trim("data.order", '[]'), '"', '') AS list, group_concat(name, ', ') AS found
      FROM facts CROSS JOIN tasks USING (run) WHERE "data.split_by" IS 'none' GROUP BY facts.run)
JOIN runs USING (run)
WHERE status = 'finished' AND found <> list
UNION ALL -- named where results per image are kept, or one dataset was cut into tasks
SELECT 'classes', run, 'task ' || task, classes || ' classes',
       count(class) || ' classes' || coalesce(', the last ' || max(class), '')
FROM tasks LEFT JOIN task_classes USING (run, task)
GROUP BY run, task
HAVING (count(class) <> classes OR max(class) >= classes)
       AND (run IN (SELECT run FROM facts WHERE "evaluation.per_image" <> 'none') OR run IN (SELECT run FROM task_classes)
            OR run IN (SELECT run FROM task_similarities))
