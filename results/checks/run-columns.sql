-- title: the columns of runs are what their settings say
WITH files AS ( -- the file of the weights without its folders
    SELECT facts.*, method, policy, selector, selection, setting, task_order, model, tasks, backend, "precision", seed,
           replace("model.weights", rtrim("model.weights", replace("model.weights", '/', '')), '') AS file,
           replace(trim("data.order", '[]'), '"', '') AS list, ', ' || trim("run.seeds", '[]') || ',' AS seeds
    FROM facts
    JOIN runs USING (run)
    WHERE "method.name" IS NOT NULL
), stems AS (
    SELECT *, rtrim(file, replace(file, '.', '')) AS stem FROM files -- with its last point
), said AS MATERIALIZED (
    SELECT *, iif(length(stem) > 1, substr(stem, 1, length(stem) - 1), file) AS said_model,
           iif("selector.kind" IN ('none', 'oracle'), "selector.kind", coalesce("selector.decision", 'none')) AS said_selection,
           CASE iif("data.shared_classes" = 'true', 'shared', "evaluation.label_space") WHEN 'shared' THEN 'domain_incremental'
                WHEN 'all' THEN 'x_tail' WHEN 'seen' THEN 'class_incremental' WHEN 'open' THEN 'open_domain'
                ELSE iif("data.shots" > 0 OR "data.task_shots" GLOB '*[1-9]*', 'few_shot', 'full_shot') END AS said_setting,
           coalesce("data.order_name", CASE list
               WHEN 'aircraft, caltech101, cifar100, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397'
               THEN 'I'
               WHEN 'stanford_cars, food, mnist, oxford_pet, flowers, sun397, aircraft, caltech101, dtd, eurosat, cifar100'
               THEN 'II' ELSE list END) AS said_order,
           iif("data.split_by" IN ('labels', 'order'), "data.parts" + coalesce("data.first" > 0, 0),
               length(list) - length(replace(list, ',', '')) + 1) AS said_tasks
    FROM stems
), pairs (run, name, expected, found) AS (
    SELECT run, 'method', "method.name", method FROM said
    UNION ALL SELECT run, 'policy', coalesce("merge.policy", 'none'), policy FROM said
    UNION ALL SELECT run, 'selector', coalesce("selector.kind", 'none'), selector FROM said
    UNION ALL SELECT run, 'selection', said_selection, selection FROM said
    UNION ALL SELECT run, 'setting', said_setting, setting FROM said
    UNION ALL SELECT run, 'order', said_order, task_order FROM said
    UNION ALL SELECT run, 'model', said_model, model FROM said
    UNION ALL SELECT run, 'tasks', said_tasks, tasks FROM said
    UNION ALL SELECT run, 'backend', coalesce(nullif("run.backend", 'auto'), backend), backend FROM said
    UNION ALL SELECT run, 'precision', coalesce(nullif("run.precision", 'auto'), "precision"), "precision" FROM said
    UNION ALL SELECT run, 'seed', iif(seeds GLOB '*..*' OR instr(seeds, ' ' || seed || ','), seed, trim(seeds, ', ')), seed FROM said
)
SELECT 'runs' AS what, run, name AS "where", expected, found
FROM pairs
WHERE expected IS NOT found
