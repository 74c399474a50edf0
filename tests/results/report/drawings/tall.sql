-- section: 209 Tall More panels than a picture has room for
-- title: tall
-- draw: heat printed
WITH numbers(number) AS (
    SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 600
)
SELECT number AS panel, number % 40 AS row, number % 3 AS column, number AS value FROM numbers
