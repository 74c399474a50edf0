-- section: 80 Classes Which classes which expert serves
-- draw: table 1
-- name: served
-- caption: {of}: effective number of experts, of {most}, that the test images choose in the last test, all of them and those of
-- caption: one class (exp of the entropy, for classes of its mean). The same number twice: the choice does not
-- caption: depend on the class. Images without a router are left out.
WITH
-- include: served
, of_classes AS (
    SELECT block, sum(count) AS count, entropy(count) AS bits FROM usage GROUP BY block, task, class
), of_all AS (
    SELECT block, entropy(count) AS bits FROM (SELECT block, sum(count) AS count FROM usage GROUP BY block, expert) GROUP BY block
)
SELECT of, (SELECT max(expert) + 1 FROM experts) AS most, 'image ' || block AS block,
       pow(2.0, of_all.bits) AS "experts of all images",
       pow(2.0, sum(of_classes.bits * count) / sum(count)) AS "of one class"
FROM of_all
JOIN of_classes USING (block)
JOIN served
GROUP BY block
ORDER BY block
