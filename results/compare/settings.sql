-- After `run_values` has the settings and contents of each configuration: keys in which any differs from the first one, and those
-- that are asked for.
INSERT OR IGNORE INTO told (configuration, key, value, content)
SELECT configuration.configuration, keys.key, own.value, keys.content
FROM (SELECT key, max(content) AS content
      FROM run_values
      GROUP BY key
      HAVING count(*) < (SELECT count(*) FROM configuration) OR min(value) <> max(value)) AS keys
CROSS JOIN configuration
LEFT JOIN run_values AS own ON own.key = keys.key AND own.place = configuration.configuration
LEFT JOIN run_values AS first ON first.key = keys.key AND first.place = 1
WHERE configuration.configuration = 1 OR own.value IS NOT first.value;

INSERT OR IGNORE INTO told (configuration, key, value, content)
SELECT 1, asked.key, value, coalesce(content, 0)
FROM asked
LEFT JOIN run_values ON run_values.place = 1 AND run_values.key = asked.key;

CREATE TEMP VIEW named_by AS
SELECT iif(whole, '*', coalesce(dimension.key, asked.key)) AS key,
       iif(name IS NULL, substr(asked.key, 1, instr(asked.key, '.') - 1), section) AS section
FROM asked
LEFT JOIN dimension ON name = asked.key;

-- A dataset's template decides its prompts. Other test images are never compared. What belongs to a compared choice is its
-- own section, as the decay of a policy that has one, and those that it decides on.
UPDATE told
SET idle = NOT content AND (value IS NULL OR is_incidental(key, value)),
    by = key <> 'test images' AND EXISTS (
        SELECT 1 FROM named_by
        WHERE named_by.key IN ('*', told.key) OR told.key = 'prompts' AND named_by.key GLOB '*.template'),
    own = EXISTS (
        SELECT 1 FROM named_by
        WHERE named_by.section = told.section
              OR named_by.key = 'method.name'
                 AND told.section IN ('adapter', 'combine', 'delta', 'merge', 'selector', 'tasks', 'training')
              OR named_by.key = 'merge.policy' AND told.section = 'combine');

-- Each configuration has each key.
INSERT OR IGNORE INTO told (configuration, key, value, idle, by, own)
SELECT configuration.configuration, key, value, idle, by, own
FROM configuration
JOIN told ON told.configuration = 1;

-- What each configuration has of what is asked for.
CREATE TEMP TABLE level (configuration INTEGER, place INTEGER, key TEXT, value TEXT, PRIMARY KEY (configuration, place)) WITHOUT ROWID;

INSERT INTO level
SELECT configuration.configuration, place, asked.key, CASE asked.key
           WHEN 'policy' THEN policy
           WHEN 'method' THEN method
           WHEN 'selector' THEN selector
           WHEN 'setting' THEN chosen.setting
           WHEN 'order' THEN task_order
           WHEN 'model' THEN model
           WHEN 'suite' THEN suite
           WHEN 'row' THEN (SELECT "row" FROM names WHERE names.run = (
                                SELECT min(run) FROM compared WHERE compared.configuration = configuration.configuration))
           ELSE coalesce(told.value, 'not set') END
FROM configuration
JOIN asked
JOIN chosen ON chosen.run = configuration.run
LEFT JOIN told ON told.configuration = configuration.configuration AND told.key = asked.key;

UPDATE configuration
SET base = (SELECT group_concat(iif((SELECT count(*) FROM asked) > 1, key || ' = ', '') || value, ', ')
            FROM (SELECT key, value FROM level WHERE level.configuration = configuration.configuration ORDER BY place));
