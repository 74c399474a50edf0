-- What tells the configurations of a board apart: the row of the suite, where each is another one; else columns of runs, each where
-- those before it leave some alike (a configuration alone: method and policy), and then their rows or up to three settings.
CREATE TEMP VIEW rows_of_suites AS
SELECT number, value AS name FROM differing WHERE key = 'run.row' AND value <> '';

CREATE TEMP TABLE named AS
SELECT count(DISTINCT name) = (SELECT count(*) FROM configurations) AS by_row FROM rows_of_suites;

UPDATE configurations SET label = (SELECT name FROM rows_of_suites WHERE rows_of_suites.number = configurations.number)
WHERE (SELECT by_row FROM named);

UPDATE configurations SET label = said.label
FROM (
    WITH words AS (
        SELECT number, word.key AS place, word.value AS word
        FROM configurations
        JOIN runs USING (run)
        JOIN json_each(json_array(suite, setting, method, policy, selector, selection, task_order, model, "precision")) AS word
    ), preceded AS (
        SELECT *, group_concat(word, char(31)) OVER (PARTITION BY number ORDER BY place
                                                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM words
    ), telling AS (
        SELECT place FROM preceded GROUP BY place, before HAVING min(word) <> max(word)
        UNION
        SELECT value FROM json_each('[2, 3]') WHERE (SELECT count(*) FROM configurations) = 1
    )
    SELECT number, group_concat(word, ' · ') AS label
    FROM (SELECT number, word FROM words JOIN telling USING (place) WHERE word <> '' ORDER BY number, place)
    GROUP BY number
) AS said, named
WHERE said.number = configurations.number AND NOT by_row;

CREATE TEMP TABLE namesakes AS
SELECT *
FROM (SELECT label, number, first_value(number) OVER alike AS first, count(*) OVER (PARTITION BY label) AS count
      FROM configurations
      WINDOW alike AS (PARTITION BY label ORDER BY number))
WHERE count > 1;

CREATE TEMP TABLE suffixes AS
SELECT label, number, name AS suffix
FROM namesakes
JOIN rows_of_suites USING (number)
WHERE count <= 200 AND count = (SELECT count(DISTINCT name)
                                FROM namesakes AS other
                                JOIN rows_of_suites USING (number)
                                WHERE other.label = namesakes.label);

INSERT INTO suffixes
WITH keys AS (
    SELECT DISTINCT label, key FROM namesakes JOIN differing USING (number)
), apart AS (
    SELECT label, keys.key AS key, min(namesakes.number) AS place
    FROM keys
    JOIN namesakes USING (label)
    LEFT JOIN differing AS a ON a.number = first AND a.key = keys.key
    LEFT JOIN differing AS b ON b.number = namesakes.number AND b.key = keys.key
    WHERE count <= 200 AND a.value IS NOT b.value AND NOT (coalesce(a.incidental, 1) AND coalesce(b.incidental, 1))
          AND label NOT IN (SELECT label FROM suffixes)
    GROUP BY label, keys.key
)
SELECT label, number, group_concat(suffix, ' · ')
FROM (SELECT label, number, apart.key || '=' || coalesce(value, 'none') AS suffix
      FROM (SELECT label FROM apart GROUP BY label HAVING count(*) <= 3)
      JOIN apart USING (label)
      JOIN namesakes USING (label)
      LEFT JOIN differing USING (number, key)
      ORDER BY number, place, apart.key)
GROUP BY label, number;

UPDATE configurations
SET label = configurations.label || iif(configurations.label = '', '', ' · ') || suffix
FROM suffixes
WHERE suffixes.number = configurations.number;

UPDATE configurations
SET label = configurations.label || ' #' || substr(hash, 1, 6)
FROM namesakes
WHERE namesakes.number = configurations.number
      AND namesakes.label IN (SELECT before.label
                              FROM namesakes AS before
                              JOIN configurations USING (number)
                              GROUP BY before.label, configurations.label
                              HAVING count(*) > 1);

-- Figures name the method, too.
UPDATE configurations
SET legend = iif(by_row OR instr(label, method), label, method || iif(method = '', '', ' · ') || label)
FROM runs, named
WHERE runs.run = configurations.run;

-- Drawn are the best with a finished run, or the best of all where none has one. A merge policy that has a colour of its own (or the
-- method of runs without one) has it on every page, whatever its rank; other names share the colours. A further configuration
-- whose usual colour is taken gets one that is left.
UPDATE configurations SET colour = given.colour
FROM (
    WITH colours(colour, bit, owner) AS (
        VALUES (0, 1, 'moe_adapters'), (1, 2, 'most_used'), (2, 4, 'random'), (3, 8, 'similar'), (4, 16, 'coactivated'),
               (5, 32, 'downstream')
    ), best AS (
        SELECT number, legend, iif(policy = 'none', method, policy) AS name
        FROM configurations
        JOIN runs USING (run)
        WHERE configurations.finished > 0 OR (SELECT max(finished) FROM configurations) = 0
        ORDER BY number
        LIMIT (SELECT best FROM page)
    ), spelled(name, rest, hash) AS (
        SELECT DISTINCT name, name, 0 FROM best
        UNION ALL
        SELECT name, substr(rest, 2), (31 * hash + unicode(rest)) & 0xffffffff FROM spelled WHERE rest <> ''
    ), usual AS (
        SELECT number, name, legend, owner IS NULL AS shares, coalesce(colours.colour, hash % 6) AS usual
        FROM best
        JOIN spelled USING (name)
        LEFT JOIN colours ON owner = name
        WHERE rest = ''
    ), ordered AS (
        SELECT *, row_number() OVER (ORDER BY further, shares, name, legend) AS place
        FROM (SELECT *, row_number() OVER (PARTITION BY usual ORDER BY shares, name, legend) > 1 AS further FROM usual)
    ), given(place, number, colour, taken) AS (
        SELECT 0, NULL, NULL, 0
        UNION ALL
        SELECT ordered.place, ordered.number, colours.colour, taken | bit
        FROM given
        JOIN ordered ON ordered.place = given.place + 1
        JOIN colours ON colours.colour = (SELECT (usual + min((free.colour - usual + 6) % 6)) % 6
                                          FROM colours AS free
                                          WHERE NOT taken & free.bit)
    )
    SELECT number, colour FROM given
) AS given
WHERE given.number = configurations.number;

CREATE TEMP TABLE drawn AS
SELECT members.run AS run, number, turn, seed, label, legend, colour, seeds
FROM members
JOIN configurations USING (number)
WHERE members.used AND colour IS NOT NULL
ORDER BY number, turn;

CREATE UNIQUE INDEX temp.drawn_run ON drawn (run);
