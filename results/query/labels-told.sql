-- Tells apart what is alike after labels.sql: words are columns of the run, then settings whose difference counts.
WITH varied AS MATERIALIZED (
    SELECT place, keys.key AS key, value, content
    FROM (SELECT key FROM run_values
          WHERE key <> 'run.row'
          GROUP BY key
          HAVING count(DISTINCT value) > 1 OR count(*) < (SELECT count(*) FROM valued)) AS keys
    CROSS JOIN valued
    LEFT JOIN run_values USING (place, key)
), said AS (
    SELECT hash, learns, word.key AS place, word.value AS word
    FROM alike
    JOIN runs USING (run)
    JOIN json_each(json_array(label, suite, setting, method, policy, selector, selection, 'order ' || task_order, model,
                              "precision")) AS word
    UNION ALL
    SELECT hash, learns, key, key || '=' || coalesce(value, 'none')
    FROM varied
    JOIN labels ON labels.rowid = place
    WHERE key IN (SELECT key FROM varied
                  WHERE content OR NOT is_incidental(key, value)
                  GROUP BY key
                  HAVING count(DISTINCT value) > 1 OR count(*) < (SELECT count(*) FROM valued))
), preceded AS (
    SELECT *, group_concat(word, char(31)) OVER (PARTITION BY hash ORDER BY place
                                                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM said
), compared AS (
    SELECT *, min(word) OVER same <> max(word) OVER same AS tells FROM preceded WINDOW same AS (PARTITION BY place, learns, before)
)
UPDATE labels SET label = telling.label
FROM (SELECT hash, group_concat(word, ', ') AS label
      FROM (SELECT * FROM compared
            WHERE word <> '' AND (tells OR place = 0)
            ORDER BY hash, place)
      GROUP BY hash) AS telling
WHERE telling.hash = labels.hash;

UPDATE labels SET label = label || ', ' || substr(hash, 1, 8) WHERE hash IN (SELECT hash FROM alike);
