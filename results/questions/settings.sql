-- title: settings in which runs differ and that matter, a column per run (--run 1,4); of one run, all of them
-- empty: they differ in no setting that matters; mtil query inputs has the files and images that they read
-- wide: title value
WITH told AS (
    SELECT run, key, value, is_incidental(key, value) AS incidental FROM chosen JOIN settings USING (run)
    UNION ALL
    SELECT run, 'seed', seed, 0 FROM chosen
    UNION ALL
    SELECT run, 'suite', suite, 0 FROM chosen
), shown AS (
    SELECT key
    FROM told
    GROUP BY key
    HAVING (SELECT count(*) FROM chosen) = 1
           OR NOT max(incidental) AND (min(value) <> max(value) OR count(*) < (SELECT count(*) FROM chosen))
)
SELECT shown.key AS setting, 'run ' || chosen.run AS title, value
FROM shown
CROSS JOIN chosen
LEFT JOIN told ON told.key = shown.key AND told.run = chosen.run
ORDER BY instr(shown.key, '.') > 0, shown.key, chosen.run
-- refuse:
SELECT count(*) || ' runs are too many to stand side by side; choose up to 50, as in mtil query settings --run 1,4'
FROM chosen
HAVING count(*) > 50
