-- title: patches form whole rows of an image, and chose experts that are there
SELECT 'patch experts' AS what, run, 'task ' || task || ', image ' || image || ', block ' || block AS "where",
       test_images || ' images, whole rows of ' || width || ' patches, ' || "adapter.experts" || ' experts' AS expected,
       json_array_length(list) || ' patches: ' || substr(experts, 1, 60) AS found
FROM (SELECT *, iif(json_valid(experts), experts, '[]') AS list FROM patch_experts)
JOIN tasks USING (run, task)
JOIN facts USING (run)
WHERE image >= test_images OR json_array_length(list) = 0 OR json_array_length(list) % width <> 0
      OR EXISTS (SELECT 1 FROM json_each(list) AS patch
                 WHERE (patch.type = 'integer' AND patch.value BETWEEN 0 AND "adapter.experts" - 1) IS NOT TRUE)
