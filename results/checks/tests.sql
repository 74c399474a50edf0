-- What tests found: accuracies, results per image, routers and experts of images.
-- === evaluations
-- title: accuracies lie within the matrix and count the test images
SELECT 'evaluations' AS what, tasks.run AS run, 'task ' || tasks.task || ', after task ' || after_task AS "where",
       test_images || ' images, in a matrix of ' || runs.tasks || ' tasks'
           || iif(setting = 'class_incremental', ', of classes that were seen', '') AS expected, images || ' images' AS found
FROM runs
CROSS JOIN tasks USING (run)
CROSS JOIN evaluations USING (run, task)
WHERE images <> test_images OR max(after_task, tasks.task) >= runs.tasks
      OR (after_task BETWEEN 0 AND tasks.task - 1 AND setting = 'class_incremental')
-- === evaluations-trained
-- title: a model is tested after a task when it has been trained on it
SELECT 'evaluations' AS what, run, 'after task ' || task AS "where", 'none: ' || planned || ' steps' AS expected,
       'an accuracy after ' || coalesce(last, 0) AS found
FROM plan
WHERE last IS NOT planned
      AND EXISTS (SELECT 1 FROM evaluations WHERE evaluations.run = plan.run AND after_task = plan.task)
-- === matrix
-- title: a finished run has the accuracies of its method
WITH RECURSIVE trained (after_task) AS (
    SELECT -1
    UNION ALL
    SELECT after_task + 1 FROM trained WHERE after_task < (SELECT max(tasks) FROM runs) - 1
), grid AS (
    SELECT run, task, after_task,
           CASE WHEN "method.imported" = 'true' THEN NULL -- of what was measured elsewhere
                WHEN after_task < 0 AND cells = 'own' THEN EXISTS (SELECT 1 FROM evaluations WHERE evaluations.run = runs.run AND after_task < 0)
                WHEN after_task < 0 THEN cells <> 'trained'
                WHEN alone THEN after_task = task
                WHEN joint THEN after_task = tasks - 1
                WHEN setting = 'class_incremental' THEN after_task >= task
                WHEN setting IN ('open_domain', 'domain_incremental') THEN 1
                ELSE cells <> 'zero-shot' END AS expected
    FROM runs
    JOIN facts USING (run)
    CROSS JOIN tasks USING (run)
    CROSS JOIN trained ON after_task < runs.tasks
    WHERE status = 'finished'
)
SELECT 'matrix' AS what, run, 'task ' || task || ', after task ' || after_task AS "where",
       iif(expected, 'an accuracy', 'none with this method') AS expected, iif(expected, 'none', 'an accuracy') AS found
FROM grid
LEFT JOIN evaluations USING (run, task, after_task)
WHERE grid.expected = (images IS NULL)
-- === per-image
-- title: every accuracy has the results per image that its run keeps
SELECT 'images' AS what, evaluations.run AS run, 'task ' || task || ', after task ' || after_task AS "where",
       "evaluation.per_image" AS expected, coalesce(kind, 'none') AS found
FROM facts
CROSS JOIN evaluations USING (run)
LEFT JOIN per_image USING (run, task, after_task)
WHERE "evaluation.per_image" <> 'none' AND kind IS NOT "evaluation.per_image"
      AND ("method.imported" IS NOT 'true' OR kind IS NOT NULL) -- a matrix is imported without images
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
-- === routers
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
-- === thresholds
-- title: every task of a selector by errors has its threshold
SELECT 'thresholds' AS what, run, 'rows' AS "where", iif(by_errors, runs.tasks, 0) AS expected,
       (SELECT count(*) FROM selector_thresholds AS own WHERE own.run = runs.run) AS found
FROM (SELECT *, selector NOT IN ('none', 'oracle') AS by_errors FROM runs) AS runs
WHERE found <> expected AND (status = 'finished' OR NOT by_errors)
UNION ALL
SELECT 'thresholds', run, 'task ' || task, iif("selector.threshold" <> 0, "selector.threshold", 'a distance'),
       coalesce(threshold, 'none')
FROM selector_thresholds JOIN facts USING (run)
WHERE threshold IS NULL OR (threshold < 0 AND "selector.kind" <> 'task_gaussian') -- -log of a density
      OR ("selector.threshold" <> 0 AND abs(threshold - "selector.threshold") > 1e-6 * abs(threshold))
-- === trials
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
-- === class-experts
-- title: every image that has a router chooses top_k experts in every block, or each of its tokens does
WITH sums AS (
    SELECT run, task, after_task, block, sum(count) AS choices, max(class) AS class, max(expert) AS expert,
           max(gate) AS highest, min(gate) AS lowest
    FROM class_experts
    GROUP BY run, task, after_task, block
), routed AS (
    SELECT run, task, after_task, total(count) FILTER (WHERE router >= 0) AS images
    FROM router_choices
    GROUP BY run, task, after_task
), expected AS (
    SELECT sums.*, classes, "adapter.experts" AS experts, "adapter.routing" IS 'per_token' AS tokens,
           CAST(coalesce(routed.images, evaluations.images) * "adapter.top_k" AS INTEGER) AS of_samples,
           max(choices) OVER (PARTITION BY run, task, after_task) AS most
    FROM sums
    JOIN tasks USING (run, task)
    JOIN evaluations USING (run, task, after_task)
    JOIN facts USING (run)
    LEFT JOIN routed USING (run, task, after_task)
)
SELECT 'class experts' AS what, run, 'task ' || task || ', after task ' || after_task || ', block ' || block AS "where",
       iif(tokens, 'a multiple of ' || of_samples || ' choices, as many in every block', of_samples || ' choices')
           || ' of ' || classes || ' classes, ' || experts || ' experts, with gates up to 1' AS expected,
       choices || ' choices up to class ' || class || ', expert ' || expert || ', gate ' || coalesce(highest, '-') AS found
FROM expected
WHERE class >= classes OR expert >= experts OR lowest < 0 OR highest > 1.000001
      OR iif(tokens, choices <> most OR of_samples = 0 OR choices % of_samples <> 0, choices <> of_samples)
-- === patch-experts
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
