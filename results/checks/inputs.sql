-- title: runs that read the same test images have as many, with as many classes
WITH parts AS ( -- a dataset that was cut into tasks is one input of the run
    SELECT inputs.run AS run, inputs.task AS task, kind, digest, files, sum(test_images) AS test,
           sum(training_images) AS train, sum(missing_images + unreadable_images) AS absent,
           iif("data.shared_classes" = 'true', NULL, sum(classes)) AS classes, -- shared ones are those of all tasks
           count(*) AS tasks, max(test_digest) AS images
    FROM inputs
    JOIN facts USING (run)
    JOIN tasks ON tasks.run = inputs.run AND inputs.task IN (-1, tasks.task)
    WHERE kind IN ('train', 'test')
    GROUP BY inputs.run, inputs.task, kind
)
SELECT 'inputs' AS what, run, 'task ' || task || ', ' || kind AS "where", files || ' images' AS expected,
       iif(kind = 'test', test, train) || ' images' AS found
FROM parts JOIN facts USING (run)
WHERE files > 1 AND absent = 0 AND task >= 0 AND iif(kind = 'test', test <> files, train > files AND "data.shots" = 0
                                                               AND "data.task_shots" IS NULL)
UNION ALL
SELECT 'inputs', max(run), 'task ' || max(task) || ', ' || kind, min(test) || ' images, as in run ' || min(run),
       max(test) || ' images'
FROM parts
WHERE kind = 'test'
GROUP BY digest, tasks, absent
HAVING min(test) <> max(test) OR min(classes) <> max(classes) OR (tasks = 1 AND min(images) <> max(images))
