-- title: the routers of single images sum to the choices
-- expect: no rows
SELECT 'routers' AS what, run, 'task ' || task || ', after task ' || after_task AS "where",
       coalesce(count, 0) || ' images to router ' || image_routers.router AS expected, images AS found
FROM image_routers JOIN runs USING (run) LEFT JOIN router_choices USING (run, after_task, task, router)
WHERE selector <> 'none' AND after_task >= 0 AND count IS NOT images
UNION ALL
SELECT 'routers', run, 'task ' || task || ', after task ' || after_task, count || ' images to router ' || router, 0
FROM (SELECT DISTINCT run, after_task, task FROM image_routers)
JOIN router_choices USING (run, after_task, task)
LEFT JOIN image_routers USING (run, after_task, task, router)
WHERE images IS NULL
