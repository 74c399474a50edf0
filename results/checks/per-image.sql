-- title: every accuracy has the results per image that its run keeps
SELECT 'images' AS what, evaluations.run AS run, 'task ' || task || ', after task ' || after_task AS "where",
       "evaluation.per_image" AS expected, coalesce(kind, 'none') AS found
FROM facts
CROSS JOIN evaluations USING (run)
LEFT JOIN per_image USING (run, task, after_task)
WHERE "evaluation.per_image" <> 'none' AND kind IS NOT "evaluation.per_image"
UNION ALL
SELECT 'images', run, 'task ' || task || ', after task ' || after_task, 'none', kind
FROM facts JOIN per_image USING (run)
WHERE "evaluation.per_image" = 'none'
UNION ALL
SELECT 'labels', run, 'task ' || task, 'those of its images', 'none'
FROM facts JOIN tasks USING (run) LEFT JOIN test_labels USING (run, task)
WHERE "evaluation.per_image" <> 'none' AND labels IS NULL
      AND EXISTS (SELECT 1 FROM per_image WHERE per_image.run = facts.run AND per_image.task = tasks.task)
UNION ALL
SELECT 'images', run, 'task ' || task || ', after task ' || after_task,
       iif(counts IS NULL, 'as many as were tested', correct), coalesce(json_extract(counts, '$.right'), 'others')
FROM tested
WHERE json_extract(counts, '$.right') IS NOT correct
UNION ALL
SELECT 'labels', run, 'task ' || task || ', after task ' || after_task, images, labelled
FROM tested
WHERE labelled <> images AND counts IS NOT NULL
UNION ALL
SELECT json.key, run, 'task ' || task || ', after task ' || after_task, 0, json.value
FROM tested JOIN json_each(counts) AS json
WHERE json.key NOT IN ('right', 'routers') AND json.value > 0
