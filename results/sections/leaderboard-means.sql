-- section: 12
-- title: Transfer, Average and Last
-- draw: interval 1 own_ranges
-- name: leaderboard
-- caption: Means over finished seeds with 95% intervals (Student); no interval where there is one seed. The axes of the panels differ.{tasks}
-- x: accuracy, %
WITH means AS (
    SELECT NULL AS number, NULL AS label, NULL AS colour, NULL AS place, NULL AS title, NULL AS y, NULL AS low, NULL AS high WHERE false
-- each main: UNION ALL SELECT number, label, configurations.colour, {place}, '{title}', mean({name}), max({low}, mean({name}) - half_width({name})), min({high}, mean({name}) + half_width({name})) FROM configurations JOIN members USING (number) WHERE configurations.colour IS NOT NULL AND members.finished GROUP BY number
)
SELECT title AS panel, label AS series, colour, y, low, high, (SELECT ' Means over all tasks, not ' || dataset || ' alone.' FROM page) AS tasks
FROM means
WHERE EXISTS (SELECT 1 FROM members WHERE finished AND last IS NOT NULL)
ORDER BY place, number
-- note:
-- include: left-out
