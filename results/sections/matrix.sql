-- section: 40 Matrix Accuracy matrix
-- title: {legend}
-- draw: heat 1
-- choice: Configuration or seed
-- name: {name}
-- caption: Test accuracy in percent on each task (columns) after each task trained (rows), {of}.
-- framed: the task just trained
-- x: test on task
-- y: after training on
-- value: accuracy, %
-- range: 0 100
-- wide: column value
-- column: * 1
WITH sets AS ( -- of a configuration all its runs (turn -1), and some by themselves
    SELECT number, -1 AS turn, run FROM drawn
    UNION ALL
    SELECT number, turn, drawn.run FROM drawn JOIN configurations USING (number) WHERE used > 1 AND turn < 5
), size AS (
    SELECT count(*) AS tasks FROM board
), weights AS ( -- of tasks in class-incremental runs, whose classes accumulate
    SELECT number, task, iif(setting = 'class_incremental', test_images, 1) AS weight, setting = 'class_incremental' AS joint
    FROM configurations
    JOIN runs USING (run)
    JOIN tasks USING (run)
    WHERE colour IS NOT NULL
), cells AS MATERIALIZED (
    SELECT number, turn, after_task AS place, task, avg(100.0 * correct / images) AS accuracy
    FROM sets
    JOIN evaluations USING (run)
    GROUP BY number, turn, after_task, task
), rows AS MATERIALIZED (
    SELECT number, turn, place, joint,
           iif(count(*) = iif(joint AND place >= 0, place + 1, tasks), sum(weight * accuracy) / sum(weight), NULL) AS mean
    FROM cells
    JOIN weights USING (number, task)
    CROSS JOIN size
    GROUP BY number, turn, place
), of_tasks AS MATERIALIZED (
    SELECT number, turn, task, joint, tasks,
           iif(NOT joint AND task > 0 AND count(*) FILTER (WHERE place BETWEEN 0 AND task - 1) = task,
               avg(accuracy) FILTER (WHERE place BETWEEN 0 AND task - 1), NULL) AS transfer,
           iif(count(*) FILTER (WHERE place >= 0) = iif(joint, tasks - task, tasks),
               avg(accuracy) FILTER (WHERE place >= 0), NULL) AS average,
           max(accuracy) FILTER (WHERE place = tasks - 1) AS last
    FROM cells
    JOIN weights USING (number, task)
    CROSS JOIN size
    GROUP BY number, turn, task
), of_rows AS (
    SELECT number, turn, iif(count(mean) = max(tasks), avg(mean), NULL) AS average, max(mean) FILTER (WHERE place = tasks - 1) AS last
    FROM rows
    CROSS JOIN size
    WHERE place >= 0
    GROUP BY number, turn
), lines AS ( -- of the table: number, turn, place, after, task (null: the mean), value
    SELECT number, turn, place, task, accuracy AS value FROM cells
    UNION ALL
    SELECT number, turn, place, NULL, mean FROM rows
    UNION ALL
    SELECT number, turn, 1000 + metric_names.place, task,
           CASE metric_names.place WHEN 0 THEN transfer WHEN 1 THEN average ELSE last END
    FROM of_tasks
    JOIN metric_names ON metric_names.place BETWEEN joint AND 2
    UNION ALL
    SELECT number, turn, 1000 + metric_names.place, NULL,
           CASE WHEN metric_names.place = 0 THEN iif(count(transfer) = max(tasks) - 1, avg(transfer), NULL)
                WHEN metric_names.place = 1 THEN iif(joint, of_rows.average, iif(count(of_tasks.average) = max(tasks), avg(of_tasks.average), NULL))
                ELSE iif(joint, of_rows.last, iif(count(of_tasks.last) = max(tasks), avg(of_tasks.last), NULL)) END
    FROM of_tasks
    JOIN metric_names ON metric_names.place BETWEEN joint AND 2
    LEFT JOIN of_rows USING (number, turn)
    GROUP BY number, turn, metric_names.place
)
SELECT label || ', ' || CASE WHEN turn >= 0 THEN 'seed ' || seed ELSE iif(configurations.used > 1, 'mean of ', '') || seeds END AS choice,
       'matrix-' || number || iif(turn >= 0, '-seed-' || seed, '') AS name, legend,
       CASE WHEN turn >= 0 THEN 'run ' || members.run ELSE iif(configurations.used > 1, 'mean over ', 'of ') || seeds END AS of,
       coalesce(board.name, metric_names.title, 'zero-shot') AS after, coalesce(tested.name, 'mean') AS "column", value,
       lines.place = lines.task AS framed, turn >= 0 OR lines.place >= 1000 OR lines.task IS NULL AS extra
FROM lines
JOIN configurations USING (number)
LEFT JOIN members USING (number, turn)
LEFT JOIN board ON board.task = lines.place
LEFT JOIN metric_names ON metric_names.place = lines.place - 1000
LEFT JOIN board AS tested ON tested.task = lines.task
ORDER BY number, turn, lines.place, lines.task IS NULL, lines.task
-- note:
-- include: left-out
