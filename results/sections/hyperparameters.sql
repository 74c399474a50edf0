-- section: 160 Settings Hyper-parameters
-- draw: table wrapped
-- caption: Settings in which configurations differ, best Last first; –: the setting does not apply.{cut}
-- wide: key value
-- column: Last 1 highest
WITH compared AS (
    SELECT number, label FROM configurations WHERE number <= 200
), differences AS ( -- settings in which the first and another one differ
    SELECT keys.key AS key, other.number AS number
    FROM (SELECT DISTINCT key FROM differing JOIN compared USING (number)) AS keys
    JOIN compared AS other
    LEFT JOIN differing AS a ON a.number = 1 AND a.key = keys.key
    LEFT JOIN differing AS b ON b.number = other.number AND b.key = keys.key
    WHERE a.value IS NOT b.value AND NOT (coalesce(a.incidental, 1) AND coalesce(b.incidental, 1))
), told AS ( -- in the order in which the configurations bring them, and whether all values are numbers
    SELECT key, row_number() OVER (ORDER BY min(number), key) AS place,
           (SELECT min(CASE WHEN json_valid(value) THEN json_type(value) IN ('integer', 'real') ELSE 0 END)
            FROM differing
            WHERE differing.key = differences.key) AS numeric
    FROM differences
    GROUP BY key
), means AS (
    SELECT number, mean(last) AS mean FROM members WHERE finished GROUP BY number
)
SELECT label AS configuration, mean AS Last, told.key AS key, iif(numeric, CAST(value AS REAL), value) AS value,
       iif((SELECT count(*) FROM told) > 30, ' More settings differ than these 30.', '') AS cut
FROM compared
LEFT JOIN means USING (number)
JOIN told ON place <= 30
LEFT JOIN differing ON differing.number = compared.number AND differing.key = told.key
ORDER BY compared.number, place
