-- section: 200 Lines A gap, a band, a vertical line, and a name that means harm
-- title: {harm}
-- draw: line 1 points
-- caption: Two panels.
-- x: tasks
-- y: accuracy, %
WITH points(panel, series, colour, x, y, low, high, mark) AS (
    VALUES ('first', 'one', 0, 0, 10, 5, 15, 1), ('first', 'one', 0, 1, NULL, 15, 25, 1), ('first', 'one', 0, 2, 30, 25, 40, 1),
           ('first', NULL, 1, 0, 5.125, NULL, NULL, 1), ('first', NULL, 1, 1, 15, NULL, NULL, 1),
           (NULL, 'one', 0, 0, 20, NULL, NULL, NULL), (NULL, 'one', 0, 2, 25, NULL, NULL, NULL)
), names(harm) AS (
    SELECT '<script>alert(1)</script>"'' onload=x %s &amp;' || CAST(x'01ff' AS TEXT)
)
SELECT coalesce(panel, harm) AS panel, coalesce(series, harm) AS series, colour, x, y, low, high, mark, harm
FROM points
JOIN names
