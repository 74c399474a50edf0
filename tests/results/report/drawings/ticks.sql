-- section: 201 Ticks Round numbers, and fewer of them where 5, 10, 15 and 20 have no room
-- title: ticks
-- draw: line own_ranges noisy
-- x: iteration
WITH panels(low, high) AS (
    VALUES (17.3, 29.1), (-1.2, 1.3), (1e6, 3e6), (0.001, 0.0011)
)
SELECT low AS panel, 'a' AS series, 1 AS x, low AS y FROM panels
UNION ALL
SELECT low, 'a', 20, high FROM panels
ORDER BY panel, x
