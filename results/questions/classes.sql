-- title: accuracy on each class: zero-shot, right after its task, and after the last task tested
-- column: run once
-- column: zero_shot,learned,last right 1
WITH tested AS (
    SELECT run, task, name, classes, max(after_task) AS last
    FROM chosen
    JOIN tasks USING (run)
    LEFT JOIN per_image USING (run, task)
    WHERE :dataset IS NULL OR name = :dataset
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
SELECT labels.run AS run, labels.task AS task, tested.name AS name, labels.class AS class, task_classes.name AS class_name,
       max(images) AS images, max(share) FILTER (WHERE moment = 'zero_shot') AS zero_shot,
       max(share) FILTER (WHERE moment = 'learned') AS learned, max(share) FILTER (WHERE moment = 'last') AS last
FROM labels
JOIN tested USING (run, task)
LEFT JOIN task_classes USING (run, task, class)
LEFT JOIN counted ON counted.run = labels.run AND counted.task = labels.task AND truth = labels.class
GROUP BY labels.run, labels.task, labels.class
ORDER BY labels.run, labels.task, labels.class
