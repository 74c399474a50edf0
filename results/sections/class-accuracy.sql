-- section: 120 Confusion Accuracy on each class, and what it is taken for
-- draw: table wrapped 1
-- name: class-accuracy
-- details: Accuracy on each of {classes} classes
-- caption: Percent of the test images of each class, {of}.
WITH
-- include: recognised
, examined AS (
    SELECT run, task FROM recognised JOIN tasks USING (run)
),
-- include: class-accuracy
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
