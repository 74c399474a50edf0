-- column: place hidden
-- column: * right 1
-- wide: title value

-- The end of a run: the zero-shot row, a row per trained task and, with more than one task, rows of Transfer, Average and
-- Last where they have a number; a column per task and their mean. A row in part has no mean.
WITH cells AS MATERIALIZED (
    SELECT run, tasks, setting = 'class_incremental' AS joint, task, after_task, 100.0 * correct / images AS accuracy
    FROM chosen
    JOIN evaluations USING (run)
), metric (place, title) AS (
    VALUES (1e6, 'Transfer'), (1e6 + 1, 'Average'), (1e6 + 2, 'Last')
), of_task AS (
    SELECT run, task, tasks, joint,
           CASE WHEN NOT joint AND task > 0 AND count(*) FILTER (WHERE after_task BETWEEN 0 AND task - 1) = task
                THEN avg(accuracy) FILTER (WHERE after_task BETWEEN 0 AND task - 1) END AS transfer,
           CASE WHEN count(*) FILTER (WHERE after_task >= 0) = iif(joint, tasks - task, tasks)
                THEN avg(accuracy) FILTER (WHERE after_task >= 0) END AS average,
           max(accuracy) FILTER (WHERE after_task = tasks - 1) AS last
    FROM cells
    GROUP BY run, task
), rows AS (
    SELECT run, after_task AS place, coalesce(tasks.name, 'zero-shot') AS after, m.accuracy AS mean
    FROM (SELECT DISTINCT run, after_task FROM cells)
    LEFT JOIN tasks USING (run)
    LEFT JOIN mean_accuracy AS m USING (run, after_task)
    WHERE tasks.task = max(after_task, 0)
    UNION ALL
    SELECT run, place, title,
           CASE title WHEN 'Transfer' THEN iif(count(transfer) = max(tasks) - 1, avg(transfer), NULL)
                      WHEN 'Average' THEN iif(max(joint), (SELECT iif(count(*) = of_task.tasks, avg(m.accuracy), NULL)
                                                          FROM mean_accuracy AS m
                                                          WHERE m.run = of_task.run AND m.after_task >= 0),
                                              iif(count(average) = max(tasks), avg(average), NULL))
                      ELSE iif(max(joint), (SELECT m.accuracy
                                            FROM mean_accuracy AS m
                                            WHERE m.run = of_task.run AND m.after_task = of_task.tasks - 1),
                               iif(count(last) = max(tasks), avg(last), NULL)) END
    FROM of_task
    CROSS JOIN metric
    GROUP BY run, place
    HAVING max(tasks) > 1
           AND CASE title WHEN 'Transfer' THEN count(transfer) WHEN 'Average' THEN count(average) ELSE count(last) END > 0
)
SELECT place, iif(place = -1, 'zero-shot', after) AS after, title, value
FROM (
    SELECT rows.place AS place, after, tasks.task AS task, name AS title,
           CASE rows.place WHEN 1e6 THEN transfer WHEN 1e6 + 1 THEN average WHEN 1e6 + 2 THEN last ELSE accuracy END AS value
    FROM rows
    JOIN tasks USING (run)
    LEFT JOIN of_task USING (run, task)
    LEFT JOIN cells ON cells.run = rows.run AND cells.task = tasks.task AND cells.after_task = rows.place
    UNION ALL
    SELECT place, after, 1e6, 'mean', mean FROM rows
)
ORDER BY place, task
