-- title: what each run was computed from: files, their sizes and digests of their contents
SELECT run, task, name, kind, path, files, bytes, digest
FROM chosen
JOIN inputs USING (run)
LEFT JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task, kind
