-- section: 202 Intervals An unknown interval, and a name that takes a line of its own
-- title: intervals
-- draw: interval 2 zero
-- x: points
WITH means(panel, series, y, low, high) AS (
    VALUES ('Last', 'a', 5, -4.5, 15), ('Last', 'b', 2.004, NULL, NULL), ('Last', 'c', NULL, NULL, NULL),
           ('Average', 'a policy whose name is longer than anybody would like it to be', -0.001, -3, 3)
)
SELECT * FROM means
