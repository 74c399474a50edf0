-- section: 208 Signs Names of many lengths beside the same value
-- title: signs
-- draw: interval 2 zero
-- name: signs-{length}
WITH lengths(length) AS (
    SELECT 2 UNION ALL SELECT length + 4 FROM lengths WHERE length < 50
)
SELECT length, '' AS panel, substr('policy none compared with policy most_used and more', 1, length) AS series, -0.23 AS y,
       -11.52 AS low, 1.06 AS high
FROM lengths
