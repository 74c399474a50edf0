-- title: SQLite reads every page
SELECT 'integrity' AS what, 0 AS run, 'file' AS "where", 'ok' AS expected, integrity_check AS found
FROM pragma_integrity_check
WHERE integrity_check <> 'ok'
