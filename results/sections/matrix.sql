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
WITH sets AS ( -- of a configuration all its runs (turn -1), and some by themselves
    SELECT number, -1 AS turn, run FROM drawn
    UNION ALL
    SELECT number, turn, drawn.run FROM drawn JOIN configurations USING (number) WHERE used > 1 AND turn < 5
), cells AS MATERIALIZED ( -- in class-incremental runs (joint), whose classes accumulate, tasks weigh as much as they have images
    SELECT number, turn, after_task AS place, task, avg(100.0 * correct / images) AS value, setting = 'class_incremental' AS joint,
           iif(setting = 'class_incremental', test_images, 1) AS weight, runs.tasks AS tasks
    FROM sets
    JOIN runs USING (run)
    JOIN tasks USING (run)
    JOIN evaluations USING (run, task)
    GROUP BY number, turn, after_task, task
), filled AS ( -- places from 1000 on: metrics of each task
    SELECT number, turn, place, task, value, joint, weight, tasks, iif(joint AND place >= 0, place + 1, tasks) AS expected FROM cells
    UNION ALL
    SELECT number, turn, 1000 + metric_names.place, task,
           CASE metric_names.place
               WHEN 0 THEN iif(count(*) FILTER (WHERE cells.place BETWEEN 0 AND task - 1) = task,
                               avg(value) FILTER (WHERE cells.place BETWEEN 0 AND task - 1), NULL)
               WHEN 1 THEN iif(count(*) FILTER (WHERE cells.place >= 0) = iif(joint, tasks - task, tasks),
                               avg(value) FILTER (WHERE cells.place >= 0), NULL)
               ELSE max(value) FILTER (WHERE cells.place = tasks - 1) END,
           joint, weight, tasks, tasks - (metric_names.place = 0)
    FROM cells
    JOIN metric_names ON metric_names.place BETWEEN joint AND 2
    GROUP BY number, turn, metric_names.place, task
), means AS (
    SELECT number, turn, place, joint, tasks,
           iif(count(value) = expected, sum(weight * value) / sum(weight) FILTER (WHERE value IS NOT NULL), NULL) AS value
    FROM filled
    GROUP BY number, turn, place
), lines AS ( -- of the table; task null: the mean, that of a joint Average over the rows above
    SELECT number, turn, place, task, value FROM filled
    UNION ALL
    SELECT number, turn, place, NULL,
           iif(joint AND place = 1001, iif(count(value) FILTER (WHERE place BETWEEN 0 AND 999) OVER own = tasks,
                                           avg(value) FILTER (WHERE place BETWEEN 0 AND 999) OVER own, NULL), value)
    FROM means
    WINDOW own AS (PARTITION BY number, turn)
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
