-- title: every row belongs to a row of its parent
SELECT 'foreign keys' AS what, 0 AS run, "table" AS "where", 'a row of ' || parent AS expected,
       'none, for ' || count(*) || ' rows' AS found
FROM pragma_foreign_key_check
GROUP BY "table", parent
