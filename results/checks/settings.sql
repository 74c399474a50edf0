-- title: settings are what the suite's text says, and settings_hash is theirs
SELECT 'settings' AS what, run, key AS "where", said.value AS expected, coalesce(settings.value, 'none') AS found
FROM told
CROSS JOIN said USING (first)
LEFT JOIN settings USING (run, key)
WHERE CASE typeof(settings.value) WHEN 'null' THEN 0
                                  WHEN 'real' THEN settings.value = CAST(said.value AS REAL)
                                  ELSE CAST(settings.value AS TEXT) = said.value END IS FALSE
UNION ALL
SELECT 'settings', run, key, 'none, as in suite_text', settings.value
FROM told
CROSS JOIN settings USING (run)
LEFT JOIN said USING (first, key)
WHERE first IN (SELECT first FROM said) AND said.first IS NULL
UNION ALL
SELECT 'identity', run, 'settings_hash', json_extract(said, '$.hash'), settings_hash
FROM told
JOIN suites USING (first)
JOIN runs USING (run)
WHERE json_extract(said, '$.hash') <> settings_hash
