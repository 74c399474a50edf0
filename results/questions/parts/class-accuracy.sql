-- Of the tasks of `examined`: shares of each class's images that were right, at three moments, and the classes.
tested AS (
    SELECT run, task, name, max(after_task) AS last
    FROM examined
    JOIN tasks USING (run, task)
    LEFT JOIN per_image USING (run, task)
    GROUP BY run, task
), moments AS (
    SELECT run, task, 'zero_shot' AS moment, -1 AS after_task FROM tested
    UNION ALL
    SELECT run, task, 'learned', task FROM tested
    UNION ALL
    SELECT run, task, 'last', last FROM tested WHERE last >= 0
), counted AS MATERIALIZED (
    SELECT moments.run AS run, moments.task AS task, moment, truth, count(*) AS images, 100.0 * sum("right") / count(*) AS share
    FROM moments
    JOIN images(moments.run, moments.task, moments.after_task)
    WHERE truth IS NOT NULL
    GROUP BY moments.run, moments.task, moment, truth
), labels AS ( -- classes may have stored labels and no image of which anything is kept
    SELECT run, task, class FROM tested JOIN task_classes USING (run, task)
    UNION
    SELECT run, task, truth FROM counted
)
