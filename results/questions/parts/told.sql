differences AS ( -- settings in which the first of `compared` (number) and another one differ
    SELECT keys.key AS key, other.number AS number
    FROM (SELECT DISTINCT key FROM differing JOIN compared USING (number)) AS keys
    JOIN compared AS other
    LEFT JOIN differing AS a ON a.number = 1 AND a.key = keys.key
    LEFT JOIN differing AS b ON b.number = other.number AND b.key = keys.key
    WHERE a.value IS NOT b.value AND NOT (coalesce(a.incidental, 1) AND coalesce(b.incidental, 1))
), told AS ( -- in the order in which the configurations bring them
    SELECT key, row_number() OVER (ORDER BY min(number), key) AS place FROM differences GROUP BY key
)
