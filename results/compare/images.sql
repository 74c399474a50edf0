-- The test images after the last task. both: tasks that two groups have, with as many images.
CREATE TEMP TABLE both AS
SELECT two.rowid AS two, dataset.place AS dataset, a.task AS task_a, b.task AS task_b, a.test_images AS images
FROM request
JOIN two
JOIN configuration AS of_a ON of_a.configuration = configuration_a
JOIN configuration AS of_b ON of_b.configuration = configuration_b
JOIN tasks AS a ON a.run = of_a.run
JOIN tasks AS b ON b.run = of_b.run AND b.name = a.name AND b.test_images = a.test_images
JOIN dataset ON dataset.name = a.name
WHERE a.test_images > 0 AND a.name = coalesce(only_dataset, a.name);

CREATE INDEX temp.both_two ON both (two);

-- kept: both groups kept the images of every such task, and the same ones.
CREATE TEMP TABLE both_seed AS
SELECT two.rowid AS two, a.seed AS seed, a.run AS run_a, b.run AS run_b, a.tasks - 1 AS after_a, b.tasks - 1 AS after_b,
       a.routed AS routed_a, b.routed AS routed_b, NOT EXISTS (
           SELECT 1
           FROM both
           WHERE both.two = two.rowid
                 AND (NOT EXISTS (SELECT 1 FROM per_image WHERE run = a.run AND task = task_a AND after_task = a.tasks - 1)
                      OR NOT EXISTS (SELECT 1 FROM per_image
                                     WHERE run = b.run AND task = task_b AND after_task = b.tasks - 1)
                      OR (SELECT test_digest FROM tasks WHERE run = a.run AND task = task_a)
                         <> (SELECT test_digest FROM tasks WHERE run = b.run AND task = task_b))) AS kept
FROM two
CROSS JOIN compared AS a ON a.configuration = configuration_a
CROSS JOIN compared AS b ON b.configuration = configuration_b AND b.seed = a.seed;

CREATE TEMP TABLE lacking AS
SELECT baseline, other, count(*) AS seeds, sum(kept) AS kept
FROM both_seed
JOIN two ON two.rowid = two
GROUP BY two
HAVING sum(kept) < count(*);

INSERT INTO note (note)
SELECT a.name || ' and ' || b.name || iif((SELECT max(context) FROM context) > 1, ' [' || a.context || ']', '') || ': of '
       || seeds || ' common seed' || iif(seeds = 1, ' ', 's ') || kept || iif(kept = 1, ' has', ' have')
       || ' the test images of both (evaluation.per_image)'
FROM (SELECT * FROM lacking LIMIT 12)
JOIN configuration AS a ON a.grp = baseline
JOIN configuration AS b ON b.grp = other;

INSERT INTO note (note)
SELECT (count(*) - 12) || ' more pairs do not have the test images of all their common seeds'
FROM lacking
HAVING count(*) > 12;
