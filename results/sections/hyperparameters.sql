-- section: 160 Settings Hyper-parameters
-- draw: table wrapped
-- caption: Settings in which configurations differ, best Last first; –: the setting does not apply.{cut}
-- wide: key value
-- column: Last 1 highest
WITH compared AS (
    SELECT number, label FROM configurations WHERE number <= 200
),
-- include: told
, kinds AS ( -- whether all values of a setting are numbers
    SELECT key, min(CASE WHEN json_valid(value) THEN json_type(value) IN ('integer', 'real') ELSE 0 END) AS numeric
    FROM differing
    JOIN compared USING (number)
    GROUP BY key
), means AS (
    SELECT number, mean(last) AS mean FROM members WHERE finished GROUP BY number
)
SELECT label AS configuration, mean AS Last, told.key AS key, iif(numeric, CAST(value AS REAL), value) AS value,
       iif((SELECT count(*) FROM told) > 10, ' More settings differ than these 10.', '') AS cut
FROM compared
LEFT JOIN means USING (number)
JOIN told ON place <= 10
JOIN kinds USING (key)
LEFT JOIN differing ON differing.number = compared.number AND differing.key = told.key
ORDER BY compared.number, place
