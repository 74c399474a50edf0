-- section: 165 Curves Last over settings of numbers
-- title: Last over {key}
-- draw: line points 1
-- choice: Setting
-- name: setting-curve-{number}
-- caption: Means over finished seeds, with 95% intervals (Student). Configurations that differ in this setting alone are one line.
-- x: {key}
-- y: Last, %
WITH keys AS MATERIALIZED ( -- settings of which all values are numbers, and several
    SELECT key, row_number() OVER (ORDER BY key) AS number
    FROM differing
    WHERE key NOT LIKE 'run.%'
    GROUP BY key
    HAVING NOT max(incidental) AND min(value) <> max(value)
           AND min(CASE WHEN json_valid(value) THEN json_type(value) IN ('integer', 'real') ELSE 0 END)
), others AS MATERIALIZED (
    SELECT key FROM differing GROUP BY key
    HAVING NOT max(incidental) AND (min(value) <> max(value) OR count(*) < (SELECT count(*) FROM configurations))
), placed AS (
    SELECT keys.key AS key, keys.number AS place, value.number AS number, CAST(value.value AS REAL) AS x,
           (SELECT coalesce(group_concat(differing.value, ' · '), 'all')
            FROM others
            LEFT JOIN differing ON differing.key = others.key AND differing.number = value.number
            WHERE others.key <> keys.key) AS series
    FROM keys
    JOIN differing AS value USING (key)
)
SELECT key AS choice, key, place AS number, '' AS panel, series, x, mean(last) AS y, max(0, mean(last) - half_width(last)) AS low,
       min(100, mean(last) + half_width(last)) AS high
FROM (SELECT *, min(x) OVER line < max(x) OVER line AS several FROM placed WINDOW line AS (PARTITION BY key, series))
JOIN members USING (number)
WHERE several AND finished AND last IS NOT NULL
GROUP BY place, series, x
ORDER BY place, series, x
