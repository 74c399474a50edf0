-- What test images were taken for, and where routers sent them.
-- === classes
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
-- === forgotten-classes
-- title: classes by what they lost from the end of their task to the last test, means over finished seeds, most first
-- empty: classes are counted where evaluation.per_image keeps results
-- column: hash hidden
-- column: learned,last,lost,"lost ±" 1
WITH examined AS (
    SELECT run, task FROM chosen JOIN tasks USING (run) WHERE status = 'finished' AND (:dataset IS NULL OR name = :dataset)
),
-- include: class-accuracy
, per_run AS (
    SELECT run, task, truth, max(share) FILTER (WHERE moment = 'learned') AS learned, max(share) FILTER (WHERE moment = 'last') AS last
    FROM counted
    GROUP BY run, task, truth
)
SELECT suite_hash AS hash, label AS row, tasks.name AS task, truth AS class, task_classes.name AS class_name, count(*) AS seeds,
       avg(learned) AS learned, avg(per_run.last) AS last, avg(learned - per_run.last) AS lost,
       plus_minus(avg(learned - per_run.last), half_width(learned - per_run.last), -100, 100) AS "lost ±"
FROM per_run
JOIN chosen USING (run)
JOIN tasks USING (run, task)
JOIN (SELECT hash, run AS first, label FROM temp.labels) AS called ON hash = suite_hash
LEFT JOIN task_classes ON task_classes.run = per_run.run AND task_classes.task = per_run.task AND class = truth
WHERE per_run.task < chosen.tasks - 1
GROUP BY suite_hash, tasks.name, truth
ORDER BY lost DESC, first, per_run.task, truth
-- === confusion
-- title: percent of each task's images that were taken for a class of each task; with a dataset, for each class
-- empty: their images are compared with the classes of their own task alone, so none is taken for another task's: mtil query
-- empty: routers shows which router they were sent to, confusion --dataset TASK the classes
-- column: run once
-- column: * right 1
-- block: run
-- wide: title share
WITH examined AS (
    SELECT run FROM chosen
),
-- include: tested
, counted AS MATERIALIZED (
    SELECT tested.run AS run, tested.task AS task, tested.name AS name, other.task AS taken, count(*) AS count
    FROM tested
    JOIN images(tested.run, tested.task, tested.after_task) AS image
    JOIN placed AS other ON other.run = tested.run AND predicted >= other.first AND predicted < other.first + other.classes
    WHERE tested.joint AND truth IS NOT NULL
    GROUP BY tested.run, tested.task, other.task
), totals AS (
    SELECT run, task, name, sum(count) AS images FROM counted GROUP BY run, task
)
SELECT totals.run AS run, totals.name AS task, images, other.name AS title, 100.0 * coalesce(count, 0) / images AS share
FROM totals
JOIN placed AS other USING (run)
LEFT JOIN counted ON counted.run = totals.run AND counted.task = totals.task AND taken = other.task
ORDER BY totals.run, totals.task, other.task
-- instead:
SELECT 'confusion-of-classes' WHERE :dataset IS NOT NULL
-- === confusion-of-classes
-- empty: classes are known where evaluation.per_image: predictions kept them
-- column: run once
-- column: share right 1
-- block: run
WITH examined AS (
    SELECT run FROM chosen
),
-- include: tested
, counted AS MATERIALIZED (
    SELECT tested.run AS run, tested.task AS task, tested.name AS name, truth, predicted + iif(tested.joint, 0, tested.first) AS class,
           count(*) AS count
    FROM tested
    JOIN images(tested.run, tested.task, tested.after_task) AS image
    WHERE tested.name = :dataset AND truth IS NOT NULL AND predicted IS NOT NULL
    GROUP BY tested.run, tested.task, truth, class
)
SELECT counted.run AS run, counted.name AS name, truth AS class, own.name AS class_name, other.name AS predicted,
       counted.class - other.first AS predicted_class, theirs.name AS predicted_name, count,
       100.0 * count / sum(count) OVER (PARTITION BY counted.run, counted.task, truth) AS share
FROM counted
JOIN placed AS other ON other.run = counted.run AND counted.class >= other.first
                        AND counted.class < other.first + other.classes
LEFT JOIN task_classes AS own ON own.run = counted.run AND own.task = counted.task AND own.class = truth
LEFT JOIN task_classes AS theirs ON theirs.run = counted.run AND theirs.task = other.task
                                    AND theirs.class = counted.class - other.first
ORDER BY counted.run, counted.task, truth, counted.class
-- === selector
-- title: selectors of each run, its own and those of mtil eval --selector, and what comes of them
-- empty: they have no selector
WITH tried AS ( -- trial 0: the run's own
    SELECT run, 0 AS trial, selector, selection, tasks FROM chosen WHERE selector <> 'none'
    UNION ALL
    SELECT DISTINCT run, trial, trials.selector, trials.selection, tasks
    FROM chosen
    JOIN trials USING (run)
), means AS (
    SELECT run, 0 AS trial, transfer, average, last FROM metrics
    UNION ALL
    SELECT run, trial, iif(min(whole), avg(transfer), NULL), iif(min(whole), avg(average), NULL), avg(last)
    FROM (
        SELECT run, trial, count(*) = tasks AS whole, avg(accuracy) FILTER (WHERE after_task < task) AS transfer,
               avg(accuracy) AS average, max(accuracy) FILTER (WHERE after_task = tasks - 1) AS last
        FROM tried
        JOIN (SELECT run, trial, task, after_task, 100.0 * correct / images AS accuracy FROM trials) USING (run, trial)
        GROUP BY run, trial, task
    )
    GROUP BY run, trial
), choices AS (
    SELECT run, 0 AS trial, after_task, task, router, count FROM router_choices WHERE after_task >= 0
    UNION ALL
    SELECT run, trial, after_task, task, CAST(router.key AS INTEGER), router.value FROM trials JOIN json_each(routers) AS router
), shares AS ( -- of the images that took the router of their task (not trained yet: none), and that took none
    SELECT run, trial, after_task, task, max(after_task) OVER (PARTITION BY run, trial) AS latest,
           100.0 * sum(count) FILTER (WHERE router = iif(task <= after_task, task, -1)) / sum(count) AS own,
           100.0 * sum(count) FILTER (WHERE router < 0) / sum(count) AS none
    FROM tried
    JOIN choices USING (run, trial)
    GROUP BY run, trial, after_task, task
), routed AS (
    SELECT run, trial, avg(coalesce(own, 0)) FILTER (WHERE after_task = latest) AS own,
           avg(coalesce(none, 0)) FILTER (WHERE after_task = latest) AS none,
           avg(coalesce(none, 0)) FILTER (WHERE task > after_task) AS unseen
    FROM shares
    GROUP BY run, trial
)
SELECT run, trial, selector, selection, own AS right_router, none AS zero_shot, unseen AS unseen_zero_shot, transfer, average, last
FROM tried
LEFT JOIN means USING (run, trial)
LEFT JOIN routed USING (run, trial)
ORDER BY run, trial
-- === routers
-- title: the router confusion after the last task: true task × chosen, percent
-- empty: no selector chose routers in them: the router is given with selector oracle, and all tasks share one with none
-- column: run,after once
-- column: row hidden
-- column: * right 1
-- block: run
-- wide: title value
WITH parts AS (
    SELECT run, run AS part FROM chosen
),
-- include: routed
, totals AS (
    SELECT part AS run, task, max(after_task) AS after_task FROM routed GROUP BY part, task
), routers AS (
    SELECT run, -1 AS router, 'zero-shot CLIP' AS name FROM totals
    UNION
    SELECT totals.run, tasks.task, name FROM totals JOIN tasks USING (run) WHERE tasks.task <= after_task
), columns AS (
    SELECT name, min(iif(router < 0, -1, run * 4096 + router)) AS place FROM routers GROUP BY router < 0, name
)
SELECT totals.run AS run, totals.task AS row,
       coalesce(trained.name, 'zero-shot') AS after, tasks.name AS task, columns.name AS title,
       CASE WHEN routers.router IS NOT NULL THEN coalesce(share, 0.0) END AS value
FROM totals
JOIN tasks USING (run, task)
LEFT JOIN tasks AS trained ON trained.run = totals.run AND trained.task = totals.after_task
CROSS JOIN columns
LEFT JOIN routers ON routers.run = totals.run AND routers.name = columns.name AND (routers.router < 0) = (place < 0)
LEFT JOIN routed ON part = totals.run AND routed.task = totals.task AND routed.router = routers.router
WHERE :dataset IS NULL OR tasks.name = :dataset
ORDER BY totals.run, totals.task, place
-- === similarity
-- title: mean cosine between the class names of tasks that are parts of a dataset
-- empty: class names are compared where one dataset is cut into tasks
SELECT chosen.run AS run, tasks.task AS task, tasks.name AS name, other, others.name AS other_name, cosine
FROM chosen
JOIN tasks USING (run)
JOIN task_similarities USING (run, task)
JOIN tasks AS others ON others.run = chosen.run AND others.task = other
WHERE :dataset IS NULL OR tasks.name = :dataset
ORDER BY chosen.run, tasks.task, other
-- === hard-images
-- title: test images that every finished run with results per image gets wrong after its last task, and what they are taken for
-- empty: some run gets each image right, or evaluation.per_image keeps nothing
-- column: file optional
WITH examined AS (
    SELECT run FROM chosen WHERE status = 'finished'
),
-- include: tested
, judged AS MATERIALIZED ( -- images of a task are the same ones where its name and their digest are
    SELECT tested.name AS name, test_digest, image, truth, predicted + iif(joint, 0, first) AS class, tested.run AS run, tested.task AS task, "right"
    FROM tested
    JOIN tasks USING (run, task)
    JOIN images(tested.run, tested.task, tested.after_task)
    WHERE :dataset IS NULL OR tested.name = :dataset
), wrong AS (
    SELECT name, test_digest, image, truth, count(*) AS runs, min(run) AS run
    FROM judged
    GROUP BY name, test_digest, image
    HAVING NOT max("right") AND count(*) > 1
), taken AS ( -- the class that most runs take it for
    SELECT name, test_digest, image, class, run, max(count) AS count
    FROM (SELECT name, test_digest, image, class, min(run) AS run, count(*) AS count FROM judged WHERE class IS NOT NULL GROUP BY 1, 2, 3, 4)
    GROUP BY name, test_digest, image
)
SELECT wrong.name AS task, wrong.image AS image, truth AS class, own.name AS class_name, runs, other.name AS taken_for_task,
       theirs.name AS taken_for, count AS by_runs, nullif(test_file(wrong.run, tasks.task || ' ' || wrong.image), '') AS file
FROM wrong
JOIN tasks ON tasks.run = wrong.run AND tasks.name = wrong.name
LEFT JOIN task_classes AS own ON own.run = wrong.run AND own.task = tasks.task AND own.class = truth
LEFT JOIN taken ON taken.name = wrong.name AND taken.test_digest IS wrong.test_digest AND taken.image = wrong.image
LEFT JOIN placed AS other ON other.run = taken.run AND taken.class >= other.first AND taken.class < other.first + other.classes
LEFT JOIN task_classes AS theirs ON theirs.run = taken.run AND theirs.task = other.task AND theirs.class = taken.class - other.first
ORDER BY wrong.name, wrong.test_digest, wrong.image
-- note:
SELECT 'image counts from 0 in the order of the test list; its file is shown where the data that the suite names are seen from here'
WHERE EXISTS (SELECT 1 FROM per_image)
-- === mean-routers
-- title: the router confusion after the last task, images of all finished seeds of a configuration together, percent
-- empty: no selector chose routers in them: the router is given with selector oracle, and all tasks share one with none
-- column: row,seeds once
-- column: hash,place hidden
-- column: * right 1
-- block: hash
-- wide: title value
WITH parts AS (
    SELECT run, suite_hash AS part FROM chosen WHERE status = 'finished'
),
-- include: routed
, totals AS (
    SELECT part, task, (SELECT count(*) FROM parts WHERE parts.part = routed.part) AS seeds FROM routed GROUP BY part, task
)
SELECT totals.part AS hash, label AS row, seeds, totals.task AS place, own.name AS task, coalesce(other.name, 'zero-shot CLIP') AS title,
       coalesce(share, 0.0) AS value
FROM totals
JOIN labels ON hash = totals.part
JOIN tasks AS own ON own.run = labels.run AND own.task = totals.task
JOIN (SELECT -1 AS router UNION SELECT task FROM parts JOIN tasks USING (run)) AS routers
LEFT JOIN tasks AS other ON other.run = labels.run AND other.task = routers.router
LEFT JOIN routed ON routed.part = totals.part AND routed.task = totals.task AND routed.router = routers.router
WHERE (routers.router < 0 OR other.name IS NOT NULL) AND (:dataset IS NULL OR own.name = :dataset)
ORDER BY labels.run, totals.task, routers.router
