-- section: 170 Differences Settings that differ
-- draw: table wrapped
-- caption: Settings of the suites that are not the same in all configurations drawn; –: the setting does not apply.
-- wide: label value
WITH compared AS (
    SELECT number, label FROM configurations WHERE colour IS NOT NULL
),
-- include: told
SELECT key AS setting, label, value
FROM told
JOIN compared
LEFT JOIN differing USING (number, key)
ORDER BY place, number
