sized AS ( -- iterations of `observed` that make a point, of which a line has 150 at most
    SELECT number, max(1, (max(iteration) + 149) / 150) AS size FROM observed GROUP BY number
), points AS MATERIALIZED (
    SELECT number, task, (iteration - 1) / size AS point, avg(iteration) AS iteration, avg(value) AS y
    FROM observed
    JOIN sized USING (number)
    WHERE value IS NOT NULL
    GROUP BY number, task, point
)
