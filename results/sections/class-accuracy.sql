-- section: 120 Confusion Accuracy on each class, and what it is taken for
-- draw: table wrapped 1
-- name: class-accuracy
-- details: Accuracy on each of {classes} classes
-- caption: Percent of the test images of each class, {of}.
WITH
-- include: recognised
, tested AS (
    SELECT run, task, name, max(after_task) AS last
    FROM recognised
    JOIN tasks USING (run)
    LEFT JOIN per_image USING (run, task)
    GROUP BY run, task
), moments AS (
    SELECT run, task, 'zero_shot' AS moment, -1 AS after_task FROM tested
    UNION ALL
    SELECT run, task, 'learned', task FROM tested
    UNION ALL
    SELECT run, task, 'last', last FROM tested WHERE last >= 0
), counted AS MATERIALIZED (
    SELECT moments.task AS task, moment, truth, count(*) AS images, 100.0 * sum("right") / count(*) AS share
    FROM moments
    JOIN images(moments.run, moments.task, moments.after_task)
    WHERE truth IS NOT NULL
    GROUP BY moments.task, moment, truth
), labels AS ( -- classes may have stored labels and no image of which anything is kept
    SELECT task, class FROM tested JOIN task_classes USING (run, task)
    UNION
    SELECT task, truth FROM counted
)
SELECT of, count(*) OVER () AS classes, coalesce(task_classes.name, labels.class) AS class, tested.name AS task,
       coalesce(max(images), 0) AS images, max(share) FILTER (WHERE moment = 'zero_shot') AS "zero-shot",
       max(share) FILTER (WHERE moment = 'learned') AS "right after its task",
       max(share) FILTER (WHERE moment = 'last') AS "at the end"
FROM labels
JOIN tested USING (task)
JOIN recognised USING (run)
LEFT JOIN task_classes USING (run, task, class)
LEFT JOIN counted ON counted.task = labels.task AND truth = labels.class
GROUP BY labels.task, labels.class
ORDER BY labels.task, labels.class
-- note:
WITH
-- include: recognised
SELECT 'One run: ' || of || '.' FROM recognised
