-- section: 205 Coinciding Curves that lie on one another
-- title: The first on two others, then on one, then on none
-- draw: line 1
-- x: tasks
WITH points(series, colour, x, y) AS (
    VALUES ('one', 0, 0, 10), ('one', 0, 1, 20), ('one', 0, 2, 20), ('one', 0, 3, 30), ('one', 0, 4, 10),
           ('two', 1, 0, 10), ('two', 1, 1, 20), ('two', 1, 2, 20), ('two', 1, 3, 20), ('two', 1, 4, NULL),
           ('three', 2, 1, 20), ('three', 2, 2, 20), ('three', 2, 3, 30), ('three', 2, 4, 20)
)
SELECT 'panel' AS panel, series, colour, x, y FROM points
