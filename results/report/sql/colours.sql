-- Drawn are the best with a finished run, or the best of all where none has one. A merge policy that has a colour of its own (or the
-- method of runs without one) has it on every page, whatever its rank; other names share the colours by their letters. Where
-- several have one usual colour, all but one get those that are left.
UPDATE configurations SET colour = given.colour
FROM (
    WITH colours(colour, owner) AS (
        VALUES (0, 'moe_adapters'), (1, 'most_used'), (2, 'random'), (3, 'similar'), (4, 'coactivated'), (5, 'downstream')
    ), best AS (
        SELECT number, label, iif(policy = 'none', method, policy) AS name
        FROM configurations
        JOIN runs USING (run)
        WHERE configurations.finished > 0 OR (SELECT max(finished) FROM configurations) = 0
        ORDER BY number
        LIMIT (SELECT best FROM page)
    ), usual AS (
        SELECT number, label, name, owner IS NULL AS shares,
               coalesce(colour, (31 * unicode(name) + 7 * unicode(substr(name, -1)) + length(name)) % 6, 0) AS colour
        FROM best
        LEFT JOIN colours ON owner = name
    ), ranked AS (
        SELECT *, row_number() OVER (PARTITION BY colour ORDER BY shares, name, label) AS rank FROM usual
    ), further AS (
        SELECT number, row_number() OVER (ORDER BY shares, name, label) AS place FROM ranked WHERE rank > 1
    ), free AS (
        SELECT colour, row_number() OVER (ORDER BY colour) AS place FROM colours WHERE colour NOT IN (SELECT colour FROM usual)
    )
    SELECT number, colour FROM ranked WHERE rank = 1
    UNION ALL
    SELECT number, colour FROM further JOIN free USING (place)
) AS given
WHERE given.number = configurations.number;

CREATE TEMP TABLE drawn AS
SELECT members.run AS run, number, turn, seed, label, colour, seeds
FROM members
JOIN configurations USING (number)
WHERE members.used AND colour IS NOT NULL
ORDER BY number, turn;

CREATE UNIQUE INDEX temp.drawn_run ON drawn (run);
