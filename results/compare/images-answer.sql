-- What the images say: bounds over seeds and images, causes of errors, and McNemar's test per seed and task.
INSERT INTO note (note)
SELECT 'intervals over seeds and images are drawn by Philox with seed ' || draw_seed
       || '; with fewer than about ten seeds they are somewhat too narrow'
       || iif(1 IN (SELECT count(DISTINCT seed) FROM looked GROUP BY two), ', and those of one seed leave out what other seeds would do', '')
FROM request
WHERE EXISTS (SELECT 1 FROM bounds);

INSERT INTO note (note)
SELECT 'McNemar''s test compares two trained models on the images of one task, not two policies; the tests over seeds do that'
WHERE EXISTS (SELECT 1 FROM looked);

INSERT INTO imaged
WITH task AS (
    SELECT two, dataset, count(*) AS seeds, max(images) AS images,
           iif(count(router_a) = count(*), sum(router_a), NULL) AS router_a,
           iif(count(router_b) = count(*), sum(router_b), NULL) AS router_b,
           iif(count(class_a) = count(*), sum(class_a), NULL) AS class_a,
           iif(count(class_b) = count(*), sum(class_b), NULL) AS class_b
    FROM (SELECT * FROM looked ORDER BY two, dataset, seed)
    GROUP BY two, dataset
), term AS (
    SELECT two, dataset, seeds, images, router_a / seeds AS router_a, router_b / seeds AS router_b,
           class_a / seeds AS class_a, class_b / seeds AS class_b
    FROM task
    UNION ALL
    SELECT two, 0, seeds, sum(images),
           iif(count(router_a) = tasks, sum(router_a / (tasks * seeds)), NULL),
           iif(count(router_b) = tasks, sum(router_b / (tasks * seeds)), NULL),
           iif(count(class_a) = tasks, sum(class_a / (tasks * seeds)), NULL),
           iif(count(class_b) = tasks, sum(class_b / (tasks * seeds)), NULL)
    FROM (SELECT *, count(*) OVER (PARTITION BY two) AS tasks FROM task ORDER BY two, dataset)
    GROUP BY two
)
SELECT baseline, other, dataset, seeds, images, difference, low, high, router_a, router_b, class_a, class_b
FROM term
JOIN bounds USING (two, dataset)
JOIN two ON two.rowid = two
WHERE dataset > 0 OR (SELECT only_dataset FROM request) IS NULL
ORDER BY two, dataset;

INSERT INTO discordance
SELECT baseline, other, dataset, seed, images, only_a, only_b, p,
       max(min(1.0, (count + 1 - rank) * p)) OVER (ORDER BY rank) AS p_holm
FROM (SELECT *, row_number() OVER (ORDER BY p, place) AS rank, count(*) OVER () AS count
      FROM (SELECT *, rowid AS place, mcnemar_p(only_a, only_b) AS p FROM looked))
JOIN two ON two.rowid = two
ORDER BY place;
