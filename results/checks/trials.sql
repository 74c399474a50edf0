-- title: trials of other selectors test as many images by routers that were trained
WITH cells AS MATERIALIZED (
    SELECT trials.*, test_images, tasks, 'trial ' || trial || ', task ' || task || ', after task ' || after_task AS place,
           (SELECT total(value) FROM json_each(routers)) AS sent,
           (SELECT max(CAST(key AS INTEGER)) FROM json_each(routers)) AS latest
    FROM trials JOIN tasks USING (run, task) JOIN runs USING (run)
)
SELECT 'trials' AS what, run, place AS "where", test_images || ' images, ' || tasks || ' tasks' AS expected,
       images || ' images' AS found
FROM cells
WHERE images <> test_images OR max(after_task, task) >= tasks
UNION ALL
SELECT 'trials', run, place, images || ' images to ' || (after_task + 1) || ' trained routers', routers
FROM cells
WHERE sent <> images OR latest > after_task
UNION ALL
SELECT 'trials', run, 'trial ' || trial || ', after task ' || after_task, tasks || ' accuracies of one selector', count(*)
FROM cells
GROUP BY run, trial, after_task
HAVING count(*) <> tasks OR min(selector || selection || settings) <> max(selector || selection || settings)
UNION ALL
SELECT 'trials', run, place, 'selector ' || selector || ', ' || selection, settings
FROM cells
WHERE instr(char(10) || settings || char(10), char(10) || 'kind: ' || selector || char(10)) = 0
      OR selection NOT IN (selector, 'per_image', 'per_batch')
      OR instr(settings, 'decision: per_' || iif(selection = 'per_batch', 'image', 'batch')) > 0
