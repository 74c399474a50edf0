-- title: to which task's classes the images of each task were assigned, percent; with a dataset, to which class
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
