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
