-- title: two seeds do not train alike
SELECT 'seeds' AS what, max(run) AS run, 'steps' AS "where", 'losses of its own' AS expected,
       'those of run ' || min(run) AS found
FROM (SELECT run, total(loss) AS losses, count(loss) AS count FROM steps GROUP BY run)
JOIN runs USING (run)
WHERE count > 1
GROUP BY suite_hash, losses, count
HAVING count(*) > 1
