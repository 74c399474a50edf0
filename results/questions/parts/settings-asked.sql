called AS ( -- what a configuration is called
    SELECT min(run) AS run, json_array(suite, setting, method, policy, selector, selection, task_order, model) AS name
    FROM chosen
    WHERE status = 'finished'
    GROUP BY suite_hash
), twins AS (
    SELECT name, count(*) AS configurations FROM called GROUP BY name HAVING count(*) > 1
), told AS ( -- keys in which configurations that are called the same differ, a row's name first, for it says most
    SELECT key, max(value) AS value
    FROM (
        SELECT key, max(value) AS value
        FROM twins
        JOIN called USING (name)
        JOIN settings USING (run)
        GROUP BY name, key
        HAVING count(DISTINCT value) > 1 OR count(*) < configurations
    )
    GROUP BY key
), shown AS ( -- where only contents differ, the paths lead to them
    SELECT place, key FROM asked
    UNION ALL
    SELECT * FROM (
        SELECT row_number() OVER (ORDER BY key <> 'run.row', key), key
        FROM told
        WHERE NOT EXISTS (SELECT 1 FROM asked)
              AND (key = 'run.row' OR key LIKE 'model.%' OR key = 'data.root' OR NOT is_incidental(key, value))
        ORDER BY 1
        LIMIT 4
    )
)
