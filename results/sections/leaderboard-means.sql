-- section: 12
-- title: Transfer, Average and Last
-- draw: interval 1 own_ranges
-- name: leaderboard
-- caption: Means over finished seeds with 95% intervals (Student); no interval where there is one seed. The axes of the panels differ.
-- x: accuracy, %
WITH means AS (
    SELECT number, label, configurations.colour AS colour, place, title,
           mean(CASE place WHEN 0 THEN transfer WHEN 1 THEN average ELSE last END) AS y,
           mean_low(CASE place WHEN 0 THEN transfer WHEN 1 THEN average ELSE last END, 0) AS low,
           mean_high(CASE place WHEN 0 THEN transfer WHEN 1 THEN average ELSE last END, 100) AS high
    FROM configurations
    JOIN members USING (number)
    JOIN metric_names ON place <= 2
    WHERE colour IS NOT NULL AND members.finished
    GROUP BY place, number
)
SELECT title AS panel, label AS series, colour, y, low, high
FROM means
WHERE EXISTS (SELECT 1 FROM members WHERE finished AND last IS NOT NULL)
ORDER BY place, number
-- note:
-- include: left-out
