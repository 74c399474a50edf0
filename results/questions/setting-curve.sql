-- title: Transfer, Average and Last over a setting of numbers: --by merge.every
-- empty: no finished run with metrics has a number there
-- column: series once
-- column: configuration hidden
-- column: name of-dataset
-- each main: -- column: "{name} ±" right 1
-- block: series
-- wide: key value

-- Configurations that differ in this setting alone are one series, which is named by the others in which any differ.
WITH
-- include: measured
, axis AS (
    SELECT key FROM asked ORDER BY place LIMIT 1
), points AS ( -- finished runs with a number there
    SELECT suite_hash, key, value, measured.*
    FROM axis
    JOIN settings USING (key)
    JOIN chosen USING (run)
    JOIN measured USING (run)
    WHERE status = 'finished' AND type IN ('integer', 'real')
), configurations AS (
    SELECT suite_hash, min(run) AS run FROM points GROUP BY suite_hash
), others AS (
    SELECT key
    FROM configurations
    JOIN settings USING (run)
    WHERE key NOT IN (SELECT key FROM axis)
    GROUP BY key
    HAVING (min(value) <> max(value) OR count(*) < (SELECT count(*) FROM configurations)) AND NOT max(is_incidental(key, value))
), placed AS (
    SELECT suite_hash, group_concat(title, ', ') AS series
    FROM (SELECT suite_hash, others.key || ' ' || value AS title
          FROM configurations
          CROSS JOIN others
          LEFT JOIN settings ON settings.run = configurations.run AND settings.key = others.key
          ORDER BY suite_hash, others.key)
    GROUP BY suite_hash
)
SELECT series, suite_hash AS configuration, name, key, value, count(*) AS runs
-- each main: , mean({name}) AS {name}, plus_minus(avg({name}), half_width({name}), {low}, {high}) AS "{name} ±"
FROM points
LEFT JOIN placed USING (suite_hash)
GROUP BY suite_hash
ORDER BY series, value, suite_hash
-- refuse:
SELECT 'which setting? Name one with --by, as in mtil query setting-curve --by merge.every' WHERE NOT EXISTS (SELECT 1 FROM asked)
