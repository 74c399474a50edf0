-- title: every tested image has a router, one that was trained by then
SELECT 'routers' AS what, sums.run AS run, 'task ' || sums.task || ', after task ' || sums.after_task AS "where",
       coalesce(images || ' images', 'an evaluation') AS expected, sums.images_sent || ' images' AS found
FROM (SELECT run, after_task, task, sum(count) AS images_sent FROM router_choices GROUP BY run, after_task, task) AS sums
LEFT JOIN evaluations USING (run, task, after_task)
WHERE images IS NULL OR images <> images_sent
UNION ALL
SELECT 'routers', run, 'task ' || task || ', after task ' || after_task,
       'a router of ' || (max(after_task, -1) + 1) || ' trained tasks of ' || runs.tasks, 'router ' || router
FROM router_choices JOIN runs USING (run)
WHERE router >= runs.tasks OR router > after_task
UNION ALL
SELECT 'routers', run, 'task ' || task || ', after task ' || after_task, 'choices of selector ' || selector, 'none'
FROM runs CROSS JOIN evaluations USING (run) LEFT JOIN router_choices USING (run, task, after_task)
WHERE selector <> 'none' AND after_task >= 0 AND router IS NULL
UNION ALL
SELECT 'routers', run, 'rows', 'none: no selector chooses', count(*)
FROM runs JOIN facts USING (run) JOIN router_choices USING (run)
WHERE selector = 'none' AND NOT alone
GROUP BY run
UNION ALL -- the routers of single images sum to the choices
SELECT 'routers', run, 'task ' || task || ', after task ' || after_task,
       coalesce(count, 0) || ' images to router ' || image_routers.router, images
FROM image_routers JOIN runs USING (run) LEFT JOIN router_choices USING (run, after_task, task, router)
WHERE selector <> 'none' AND after_task >= 0 AND count IS NOT images
UNION ALL
SELECT 'routers', run, 'task ' || task || ', after task ' || after_task, count || ' images to router ' || router, 0
FROM (SELECT DISTINCT run, after_task, task FROM image_routers)
JOIN router_choices USING (run, after_task, task)
LEFT JOIN image_routers USING (run, after_task, task, router)
WHERE images IS NULL
