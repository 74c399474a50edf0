-- section: 25
-- draw: table wrapped 2
-- name: groups
-- details: Means of each group
-- caption: Percent, over finished seeds, with standard deviation and 95% interval (Student).{cut}
-- wide: by name
-- column: grp hidden
-- column: context optional
-- column: dataset optional
WITH
-- include: compared
SELECT grp, number AS context, "by", compared_groups.name AS name, metric.name AS metric, dataset.name AS dataset, n AS seeds,
       mean, sd, mean - half AS low, mean + half AS high, iif(count(*) OVER () > 600, ' Cut to 600 rows; mtil compare has all.', '') AS cut
FROM sample
JOIN compared_groups USING (grp)
JOIN metric ON metric.place = sample.metric
LEFT JOIN dataset ON dataset.place = sample.dataset
WHERE EXISTS (SELECT 1 FROM compared_pairs)
ORDER BY number, sample.metric, sample.dataset, grp
LIMIT 600
