-- section: 207 Cells Neighbours are one rectangle, and those without a value are left out
-- title: cells
-- draw: cells
SELECT 'image' AS panel, column1 AS column, column2 AS row, column3 AS value, 'expert ' || column3 AS series
FROM (VALUES (0, 0, 7), (1, 0, 7), (2, 0, 3), (0, 1, NULL), (1, 1, 3), (2, 1, 7))
