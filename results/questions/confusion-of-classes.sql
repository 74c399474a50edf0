-- column: run once
-- column: share right 1
WITH
-- include: tested
, counted AS MATERIALIZED (
    SELECT placed.run AS run, placed.task AS task, placed.name AS name, truth, predicted + iif(joint, 0, first) AS class,
           count(*) AS count
    FROM placed
    JOIN tested USING (run, task)
    JOIN images(placed.run, placed.task, tested.after_task) AS image
    WHERE placed.name = :dataset AND truth IS NOT NULL AND predicted IS NOT NULL
    GROUP BY placed.run, placed.task, truth, class
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
