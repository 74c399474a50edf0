-- section: 40 Matrix Accuracy matrix
-- title: {label}
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
), measured AS ( -- task null: of the run
    SELECT * FROM task_metrics
    UNION ALL
    SELECT run, NULL
-- each: , {name}
    FROM members
), lines AS ( -- of the table; place: after this task, from 1000 on a metric; task null: the mean over tasks
    SELECT number, turn, after_task AS place, task, avg(accuracy) AS value
    FROM sets
    JOIN matrix USING (run)
    GROUP BY number, turn, after_task, task
    UNION ALL
    SELECT number, turn, after_task, NULL, avg(accuracy) FROM sets JOIN mean_accuracy USING (run) GROUP BY number, turn, after_task
    UNION ALL
    SELECT number, turn, 1000 + place, task, avg(CASE name
-- each main: WHEN '{name}' THEN {name}
           END) AS value
    FROM sets
    JOIN measured USING (run)
    JOIN metric_list ON tags LIKE '%main%'
    GROUP BY number, turn, place, task
    HAVING value IS NOT NULL
)
SELECT label || ', ' || CASE WHEN turn >= 0 THEN 'seed ' || seed ELSE iif(configurations.used > 1, 'mean of ', '') || seeds END AS choice,
       'matrix-' || number || iif(turn >= 0, '-seed-' || seed, '') AS name, label,
       CASE WHEN turn >= 0 THEN 'run ' || members.run ELSE iif(configurations.used > 1, 'mean over ', 'of ') || seeds END AS of,
       coalesce(board.name, metric_list.title, 'zero-shot') AS after, coalesce(tested.name, 'mean') AS "column", value,
       lines.place = lines.task AS framed, turn >= 0 OR lines.place >= 1000 OR lines.task IS NULL AS extra
FROM lines
JOIN configurations USING (number)
LEFT JOIN members USING (number, turn)
LEFT JOIN board ON board.task = lines.place
LEFT JOIN metric_list ON metric_list.place = lines.place - 1000
LEFT JOIN board AS tested ON tested.task = lines.task
ORDER BY number, turn, lines.place, lines.task IS NULL, lines.task
