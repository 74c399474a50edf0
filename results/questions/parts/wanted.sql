-- The settings that --where asks for: words without "=" continue the list before them.
words (place, word) AS (
    SELECT key, value FROM json_each('[' || replace(json_quote(:where), ',', '","') || ']') WHERE :where IS NOT NULL
), wanted AS (
    SELECT trim(substr(condition, 1, instr(condition, '=') - 1)) AS key, trim(substr(condition, instr(condition, '=') + 1)) AS value
    FROM (SELECT group_concat(word, ',') AS condition
          FROM (SELECT word, (SELECT max(place) FROM words AS first WHERE first.place <= words.place AND instr(first.word, '=')) AS begin
                FROM words
                ORDER BY place)
          GROUP BY begin)
), fitting AS ( -- numbers in any notation, lists with commas, blanks or both between their words
    SELECT run, wanted.key AS key, wanted.value AS value
    FROM wanted
    CROSS JOIN runs
    CROSS JOIN settings USING (run, key)
    WHERE settings.value = wanted.value
          OR settings.value = iif(json_valid(wanted.value), json_extract(wanted.value, '$'), NULL)
          OR type = 'list' AND trim(replace(replace(replace(replace(settings.value, '[', ''), ']', ''), ', ', ' '), ',', ' '))
                               = trim(replace(replace(replace(replace(wanted.value, '[', ''), ']', ''), ', ', ' '), ',', ' '))
)
