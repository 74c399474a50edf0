-- section: 205 Shades A path for each shade, dots, and room for the last label
-- title: shades
-- draw: heat
-- x: expert
-- y: block
-- range: 0
WITH cells(row, column) AS (
    SELECT 1, 0 UNION ALL SELECT 1, column + 1 FROM cells WHERE column < 15
)
SELECT 'image' AS panel, row, column, column % 4 AS value, column = 5 AS framed FROM cells
UNION ALL
SELECT 'image', 2, 7, 3, 0
UNION ALL
SELECT 'text', 2, 9, 1, 0
