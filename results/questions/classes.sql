-- title: accuracy on each class: zero-shot, right after its task, and after the last task tested
-- empty: classes are counted where evaluation.per_image keeps results
-- column: run once
-- column: zero_shot,learned,last right 1
-- block: run
WITH examined AS (
    SELECT run, task FROM chosen JOIN tasks USING (run) WHERE :dataset IS NULL OR name = :dataset
),
-- include: class-accuracy
SELECT labels.run AS run, labels.task AS task, tested.name AS name, labels.class AS class, task_classes.name AS class_name,
       max(images) AS images, max(share) FILTER (WHERE moment = 'zero_shot') AS zero_shot,
       max(share) FILTER (WHERE moment = 'learned') AS learned, max(share) FILTER (WHERE moment = 'last') AS last
FROM labels
JOIN tested USING (run, task)
LEFT JOIN task_classes USING (run, task, class)
LEFT JOIN counted ON counted.run = labels.run AND counted.task = labels.task AND truth = labels.class
GROUP BY labels.run, labels.task, labels.class
ORDER BY labels.run, labels.task, labels.class
