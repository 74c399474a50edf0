-- section: 21
-- draw: table wrapped 2
-- name: overview
-- caption: In how many contexts one is above the other; supported: with p ≤ 0.05 after Holm's correction.
-- wide: by other
-- column: place hidden
WITH
-- include: compared
SELECT overview.place AS place, baseline, compared AS "by", other, metric.name AS metric, contexts, difference, least, most, above,
       supported_above, below, supported_below
FROM overview
JOIN metric ON metric.place = metric
JOIN page
WHERE (SELECT count(*) FROM compared_groups) = (SELECT count(*) FROM configuration)
ORDER BY overview.place
