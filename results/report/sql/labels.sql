-- Labels that tell configurations of a board apart which columns of `runs` do not: their rows of the suite, or up to three settings.
UPDATE page_configurations SET base = label;

CREATE TEMP TABLE namesakes AS
SELECT *
FROM (SELECT board, base, number, hash, first_value(hash) OVER (PARTITION BY board, base ORDER BY number) AS first,
             count(*) OVER (PARTITION BY board, base) AS count
      FROM page_configurations
      WHERE NOT named)
WHERE count BETWEEN 2 AND 200;

CREATE TEMP TABLE suffixes AS
SELECT board, base, hash, value AS suffix
FROM namesakes
JOIN page_settings USING (hash)
WHERE key = 'run.row'
      AND (SELECT count(DISTINCT value)
           FROM namesakes AS other
           JOIN page_settings USING (hash)
           WHERE other.board = namesakes.board AND other.base = namesakes.base AND key = 'run.row') = count;

INSERT INTO suffixes
WITH keys AS (
    SELECT DISTINCT board, base, key FROM namesakes JOIN page_settings USING (hash)
), apart AS (
    SELECT board, base, keys.key AS key, min(number) AS place
    FROM keys
    JOIN namesakes USING (board, base)
    LEFT JOIN page_settings AS a ON a.hash = first AND a.key = keys.key
    LEFT JOIN page_settings AS b ON b.hash = namesakes.hash AND b.key = keys.key
    WHERE a.value IS NOT b.value AND NOT (coalesce(a.incidental, 1) AND coalesce(b.incidental, 1))
    GROUP BY board, base, keys.key
), few AS (
    SELECT board, base FROM apart GROUP BY board, base HAVING count(*) <= 3
)
SELECT board, base, hash, group_concat(suffix, ' · ')
FROM (SELECT board, base, namesakes.hash AS hash, apart.key || '=' || coalesce(value, 'none') AS suffix
      FROM few
      JOIN apart USING (board, base)
      JOIN namesakes USING (board, base)
      LEFT JOIN page_settings ON page_settings.hash = namesakes.hash AND page_settings.key = apart.key
      WHERE (board, base) NOT IN (SELECT board, base FROM suffixes)
      ORDER BY board, base, namesakes.hash, place, apart.key)
GROUP BY board, base, hash;

UPDATE page_configurations
SET label = label || iif(label = '', '', ' · ') || (SELECT suffix FROM suffixes WHERE suffixes.hash = page_configurations.hash)
WHERE hash IN (SELECT hash FROM suffixes);

UPDATE page_configurations
SET label = label || ' #' || substr(hash, 1, 6)
WHERE (board, base) IN (SELECT board, base FROM page_configurations GROUP BY board, base, label HAVING count(*) > 1);

-- Figures name the method, too.
UPDATE page_configurations
SET legend = iif(named OR instr(label, method), label, method || iif(method = '', '', ' · ') || label);

DROP TABLE namesakes;
DROP TABLE suffixes;
