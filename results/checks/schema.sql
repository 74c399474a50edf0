-- title: tables, views, indices and triggers are this program's
SELECT 'schema' AS what, 0 AS run, name AS "where", 'this program''s' AS expected,
       iif(found.sql IS NULL, 'none', 'another definition') AS found
FROM own_schema LEFT JOIN found_schema AS found USING (name)
WHERE found.sql IS NOT own_schema.sql
UNION ALL
SELECT 'schema', 0, name, 'none', 'one'
FROM found_schema
WHERE name NOT IN (SELECT name FROM own_schema)
