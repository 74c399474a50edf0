-- section: 20 Comparison Comparison
-- title: Differences by {by}
-- draw: interval zero 2
-- caption: Mean differences over all contexts and common seeds, with 95% intervals (Student); right of the dotted line the first is
-- caption: better. No interval where there is one seed.{cut}
-- x: difference, points
WITH
-- include: compared
, ranked AS (
    SELECT *, row_number() OVER (PARTITION BY metric ORDER BY place) AS rank, count(*) OVER (PARTITION BY metric) AS count
    FROM compared_pairs
    WHERE difference IS NOT NULL AND dataset = 0
)
SELECT "by", title AS panel, other || ' − ' || baseline AS series, 0 AS colour, difference AS y, low, high,
       iif(count > 12, ' The first 12 of ' || count || ' pairs.', '') AS cut
FROM ranked
WHERE rank <= 12
ORDER BY metric, rank
