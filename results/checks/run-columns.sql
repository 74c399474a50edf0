-- title: the columns of runs are what their settings say
-- expect: no rows
WITH files AS ( -- the file of the weights without its folders
    SELECT *, replace("model.weights", rtrim("model.weights", replace("model.weights", '/', '')), '') AS file,
           replace(trim("data.order", '[]'), '"', '') AS list
    FROM facts
), said AS MATERIALIZED (
    SELECT run, "method.name" AS method, coalesce("merge.policy", 'none') AS policy,
           coalesce("selector.kind", 'none') AS selector,
           CASE WHEN "selector.kind" IN ('none', 'oracle') THEN "selector.kind"
                ELSE coalesce(nullif("selector.decision", ''), 'none') END AS selection,
           CASE "evaluation.label_space" WHEN 'all' THEN 'x_tail' WHEN 'seen' THEN 'class_incremental'
                ELSE iif("data.shots" > 0, 'few_shot', 'full_shot') END AS setting,
           coalesce("data.order_name", CASE list
               WHEN 'aircraft, caltech101, cifar100, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397'
               THEN 'I'
               WHEN 'stanford_cars, food, mnist, oxford_pet, flowers, sun397, aircraft, caltech101, dtd, eurosat, cifar100'
               THEN 'II' ELSE list END) AS task_order,
           iif(instr(substr(file, 2), '.'), substr(rtrim(file, replace(file, '.', '')), 1,
               length(rtrim(file, replace(file, '.', ''))) - 1), file) AS model,
           iif("data.split_by" IN ('labels', 'order'), "data.parts" + coalesce("data.first" > 0, 0),
               length(list) - length(replace(list, ',', '')) + 1) AS tasks,
           nullif("run.backend", 'auto') AS backend, nullif("run.precision", 'auto') AS "precision",
           iif(', ' || trim("run.seeds", '[]') || ',' GLOB '*..*', NULL, ', ' || trim("run.seeds", '[]') || ',') AS seeds
    FROM files
    WHERE "method.name" IS NOT NULL
), pairs (run, name, expected, found) AS (
    SELECT run, 'method', said.method, runs.method FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'policy', said.policy, runs.policy FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'selector', said.selector, runs.selector FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'selection', said.selection, runs.selection FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'setting', said.setting, runs.setting FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'order', said.task_order, runs.task_order FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'model', said.model, runs.model FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'tasks', said.tasks, runs.tasks FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'backend', coalesce(said.backend, runs.backend), runs.backend FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'precision', coalesce(said."precision", runs."precision"), runs."precision"
              FROM said JOIN runs USING (run)
    UNION ALL SELECT run, 'seed', iif(seeds IS NULL OR instr(seeds, ' ' || seed || ','), seed, seeds), seed FROM said JOIN runs USING (run)
)
SELECT 'runs' AS what, run, name AS "where", expected, found
FROM pairs
WHERE expected IS NOT found
