-- After the settings are told: each configuration has each key.
INSERT OR IGNORE INTO told
SELECT configuration.configuration, key, value, idle, by, own
FROM configuration
JOIN told ON told.configuration = 1;

UPDATE configuration
SET base = (SELECT group_concat(iif(several, key || ' = ', '') || value, ', ')
            FROM (SELECT asked.key, count(*) OVER () > 1 AS several, CASE asked.key
                         WHEN 'policy' THEN policy
                         WHEN 'method' THEN method
                         WHEN 'selector' THEN selector
                         WHEN 'setting' THEN chosen.setting
                         WHEN 'order' THEN task_order
                         WHEN 'model' THEN model
                         WHEN 'suite' THEN suite
                         WHEN 'row' THEN coalesce((SELECT value FROM settings
                                                   WHERE settings.run = chosen.run AND settings.key = 'run.row'), '')
                         ELSE coalesce(told.value, 'not set') END AS value
                  FROM asked
                  JOIN chosen ON chosen.run = configuration.run
                  LEFT JOIN told ON told.configuration = configuration.configuration AND told.key = asked.key
                  ORDER BY place));
