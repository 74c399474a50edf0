-- Conditions between rows, a query each, which returns the rows that violate it: what, run (0: the whole file), where,
-- expected, found. Statements end with a semicolon at the end of a line (verify/rows.c).

SELECT 'integrity', 0, 'file', 'ok', integrity_check
FROM pragma_integrity_check
WHERE integrity_check <> 'ok';

SELECT 'foreign keys', 0, "table", 'a row of ' || parent, 'none, for ' || count(*) || ' rows'
FROM pragma_foreign_key_check
GROUP BY "table", parent;

SELECT 'runs', run, 'status ' || status, iif(status = 'running', 'no time of its end', 'the time of its end'),
       coalesce(finished, 'none')
FROM runs
WHERE (status = 'running') <> (finished IS NULL);

SELECT 'tasks', run, 'rows', runs.tasks, (SELECT count(*) FROM tasks WHERE tasks.run = runs.run) AS there
FROM runs
WHERE status = 'finished' AND there <> runs.tasks;

SELECT 'tasks', run, 'task ' || task, 'one of ' || runs.tasks, 'no such task'
FROM tasks JOIN runs USING (run)
WHERE task >= runs.tasks;

SELECT 'classes', run, 'task ' || task, classes || ' classes', count(*) || ' classes, the last ' || max(class)
FROM task_classes JOIN tasks USING (run, task)
GROUP BY run, task
HAVING count(*) <> classes OR max(class) >= classes;

SELECT 'evaluations', run, 'task ' || task || ', after task ' || after_task, runs.tasks || ' tasks', 'a cell outside'
FROM evaluations JOIN runs USING (run)
WHERE after_task >= runs.tasks OR task >= runs.tasks;

SELECT 'evaluations', run, 'task ' || task || ', after task ' || after_task, test_images || ' images',
       images || ' images'
FROM evaluations JOIN tasks USING (run, task)
WHERE images <> test_images;

SELECT 'evaluations', run, 'task ' || task || ', after task ' || after_task, 'none: its classes have not been seen',
       'an accuracy'
FROM evaluations JOIN runs USING (run)
WHERE setting = 'class_incremental' AND after_task BETWEEN 0 AND task - 1;

SELECT 'routers', sums.run, 'task ' || sums.task || ', after task ' || sums.after_task,
       coalesce(images || ' images', 'an evaluation'), sums.images_sent || ' images'
FROM (SELECT run, after_task, task, sum(count) AS images_sent FROM router_choices GROUP BY run, after_task, task) AS sums
LEFT JOIN evaluations USING (run, task, after_task)
WHERE images IS NULL OR images <> images_sent;

SELECT 'routers', run, 'task ' || task || ', after task ' || after_task, 'a router of ' || runs.tasks || ' tasks',
       'router ' || router
FROM router_choices JOIN runs USING (run)
WHERE router >= runs.tasks;

SELECT 'thresholds', run, 'rows', runs.tasks,
       (SELECT count(*) FROM selector_thresholds AS own WHERE own.run = runs.run) AS there
FROM runs
WHERE status = 'finished' AND selector IN ('clip', 'alexnet', 'gaussian', 'text') AND there <> runs.tasks;

WITH sizes AS (SELECT run, max(expert) + 1 AS experts FROM expert_counts GROUP BY run)
SELECT 'experts', run, 'task ' || task || ', ' || encoder || ' block ' || block, experts || ' experts',
       count(*) || ' experts'
FROM expert_counts JOIN sizes USING (run)
GROUP BY run, task, encoder, block
HAVING count(*) <> experts;

-- A single training on all tasks is recorded under the last task.
SELECT 'experts', run, 'rows', 'counts of ' || (runs.tasks - first) || ' tasks', count(DISTINCT task) || ' tasks'
FROM runs JOIN expert_counts USING (run) JOIN (SELECT run, min(task) AS first FROM steps GROUP BY run) USING (run)
WHERE status = 'finished'
GROUP BY run
HAVING count(DISTINCT task) <> runs.tasks - first;

WITH sizes AS (SELECT run, max(expert) + 1 AS experts FROM expert_counts GROUP BY run)
SELECT 'class experts', run, 'task ' || task || ', after task ' || after_task || ', block ' || block,
       classes || ' classes, ' || coalesce(experts, 0) || ' experts',
       'class ' || max(class) || ', expert ' || max(expert)
FROM class_experts JOIN tasks USING (run, task) LEFT JOIN sizes USING (run)
GROUP BY run, task, after_task, block
HAVING max(class) >= classes OR max(expert) >= coalesce(experts, 0);

WITH sizes AS (SELECT run, max(expert) + 1 AS most FROM expert_counts GROUP BY run),
chosen AS (SELECT *, iif(json_valid(experts), experts, '[]') AS list FROM patch_experts)
SELECT 'patch experts', run, 'task ' || task || ', image ' || image || ', block ' || block,
       test_images || ' images, whole rows of ' || width || ' patches, ' || coalesce(most, 0) || ' experts',
       json_array_length(list) || ' patches: ' || substr(experts, 1, 60)
FROM chosen JOIN tasks USING (run, task) LEFT JOIN sizes USING (run)
WHERE image >= test_images OR json_array_length(list) = 0 OR json_array_length(list) % width <> 0
      OR EXISTS (SELECT 1 FROM json_each(list) AS patch
                 WHERE (patch.type = 'integer' AND patch.value BETWEEN 0 AND most - 1) IS NOT TRUE);

-- Every image that has a router chooses top_k experts in every block, or each of its tokens does.
WITH sums AS (
    SELECT run, task, after_task, block, sum(count) AS choices FROM class_experts GROUP BY run, task, after_task, block
), routed AS (
    SELECT run, task, after_task, total(count) FILTER (WHERE router >= 0) AS images
    FROM router_choices GROUP BY run, task, after_task
), expected AS (
    SELECT sums.*, CAST(coalesce(routed.images, evaluations.images) * top_k.value AS INTEGER) AS of_samples,
           (SELECT value FROM settings WHERE settings.run = sums.run AND key = 'adapter.routing') IS 'per_token' AS tokens,
           max(choices) OVER (PARTITION BY run, task, after_task) AS most
    FROM sums
    JOIN evaluations USING (run, task, after_task)
    LEFT JOIN routed USING (run, task, after_task)
    JOIN settings AS top_k USING (run)
    WHERE top_k.key = 'adapter.top_k'
)
SELECT 'class experts', run, 'task ' || task || ', after task ' || after_task || ', block ' || block,
       iif(tokens, 'a multiple of ' || of_samples || ' choices, as many in every block', of_samples || ' choices'),
       choices || ' choices'
FROM expected
WHERE iif(tokens, choices <> most OR of_samples = 0 OR choices % of_samples <> 0, choices <> of_samples);

WITH sizes AS (SELECT run, max(expert) + 1 AS experts FROM expert_counts GROUP BY run)
SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       'one of ' || experts || ' experts',
       event || ' of ' || coalesce(t1, '-') || ' and ' || coalesce(t2, '-') || ' into ' || coalesce(target, '-')
FROM expert_events JOIN sizes USING (run)
WHERE max(coalesce(target, 0), coalesce(t1, 0), coalesce(t2, 0)) >= experts
      OR min(coalesce(target, 0), coalesce(t1, 0), coalesce(t2, 0)) < 0;

WITH sizes AS (SELECT run, max(expert) + 1 AS experts FROM expert_counts GROUP BY run)
SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       'weights of ' || experts || ' experts', 'mixture ' || mixture
FROM expert_events JOIN sizes USING (run)
WHERE mixture IS NOT NULL
      AND (NOT json_valid(mixture)
           OR EXISTS (SELECT 1 FROM json_each(iif(json_valid(mixture), mixture, '[]')) AS part
                      WHERE json_extract(part.value, '$[0]') NOT BETWEEN 0 AND experts - 1));

SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       iif(event = 'skip', 'a reason', 'a target'), 'a ' || event || ' without'
FROM expert_events
WHERE iif(event = 'skip', reason IS NULL, target IS NULL);

SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       'positions 0 to ' || (count(*) - 1), min(position) || ' to ' || max(position)
FROM expert_events
GROUP BY run, task, iteration, encoder, block
HAVING min(position) <> 0 OR max(position) <> count(*) - 1;

-- The frozen set only grows, so a frozen expert is never written again.
SELECT 'frozen', merges.run,
       'task ' || merges.task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       'expert ' || target || ' as it was frozen after task ' || freezes.task, 'merged into'
FROM (SELECT * FROM expert_events WHERE event = 'merge') AS merges
JOIN (SELECT run, encoder, block, target, min(task) AS task FROM expert_events WHERE event = 'freeze'
      GROUP BY run, encoder, block, target) AS freezes USING (run, encoder, block, target)
WHERE merges.task > freezes.task;

-- Freezing follows a task's last step, which is always logged.
SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block,
       event || iif(event = 'freeze', ' after step ', ' up to step ') || last, 'after step ' || iteration
FROM expert_events
JOIN runs USING (run)
JOIN (SELECT run, task, max(iteration) AS last FROM steps GROUP BY run, task) USING (run, task)
WHERE status = 'finished' AND (iteration > last OR (event = 'freeze' AND iteration < last));

SELECT 'effects', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       'a merge', coalesce(event, 'nothing')
FROM merge_effects
LEFT JOIN expert_events USING (run, task, iteration, encoder, block, position)
WHERE event IS NOT 'merge';

SELECT 'steps', run, 'task ' || task || ', iteration ' || iteration, 'a learning rate', learning_rate
FROM steps
WHERE learning_rate < 0 OR abs(learning_rate) > 1e300;

SELECT 'settings', run, 'rows', 'the settings of the run', 'none'
FROM runs
WHERE NOT EXISTS (SELECT 1 FROM settings WHERE settings.run = runs.run);

-- A task has as many steps as its settings say. A single training on all tasks, recorded under the last task, has as
-- many as all tasks together.
WITH own AS (SELECT run, task, max(iteration) AS last FROM steps GROUP BY run, task),
together AS (SELECT run FROM runs JOIN own USING (run) GROUP BY run HAVING min(own.task) = runs.tasks - 1),
entries AS ( -- tasks that one dataset was cut into have the entry of that dataset
    SELECT tasks.run AS run, tasks.task AS task, last, training_images,
           iif(split.value IN ('labels', 'order'), trim(listed.value, '[]"'), name) AS entry
    FROM tasks
    LEFT JOIN own USING (run, task)
    LEFT JOIN settings AS split ON split.run = tasks.run AND split.key = 'data.split_by'
    LEFT JOIN settings AS listed ON listed.run = tasks.run AND listed.key = 'data.order'
    WHERE last IS NOT NULL OR tasks.run IN (SELECT run FROM together)
), said AS (
    SELECT run, task, last, training_images,
           coalesce(max(value) FILTER (WHERE key = 'tasks.' || entry || '.iterations'),
                    max(value) FILTER (WHERE key = 'training.iterations')) AS iterations,
           coalesce(max(value) FILTER (WHERE key = 'tasks.' || entry || '.epochs'),
                    max(value) FILTER (WHERE key = 'training.epochs'), 0) AS epochs,
           coalesce(max(value) FILTER (WHERE key = 'tasks.' || entry || '.batch'),
                    max(value) FILTER (WHERE key = 'training.batch')) AS batch,
           coalesce(max(value) FILTER (WHERE key = 'tasks.' || entry || '.reference_iterations'),
                    max(value) FILTER (WHERE key = 'training.reference_iterations')) AS more
    FROM entries
    LEFT JOIN settings USING (run)
    GROUP BY run, task
), asked AS (
    SELECT run, task, last,
           iif(epochs > 0, epochs * ((training_images + batch - 1) / batch), iterations) + ('true' IS more) AS steps
    FROM said
)
SELECT 'steps', run, 'task ' || task || ', last step', steps, last
FROM (SELECT run, max(task) AS task, max(last) AS last, sum(steps) AS steps
      FROM asked GROUP BY run, iif(run IN (SELECT run FROM together), -1, task))
JOIN runs USING (run)
WHERE last > steps OR (status = 'finished' AND last < steps);

SELECT 'views', run, 'matrix', cells || ' accuracies', coalesce(shown, 0) || ' accuracies'
FROM (SELECT run, count(*) AS cells FROM evaluations GROUP BY run)
LEFT JOIN (SELECT run, count(*) AS shown FROM matrix
           WHERE abs(accuracy - 100.0 * correct / images) < 1e-9 GROUP BY run) USING (run)
WHERE cells IS NOT shown;

SELECT 'views', run, 'expert_usage, task ' || task || ', ' || encoder || ' block ' || block, '100 percent',
       total(share) || ' percent'
FROM expert_usage
GROUP BY run, task, encoder, block
HAVING sum(count) > 0 AND abs(total(share) - 100) > 1e-6;

SELECT 'views', run, 'selector, task ' || task || ', after task ' || after_task, '100 percent',
       total(share) || ' percent'
FROM selector
GROUP BY run, task, after_task
HAVING abs(total(share) - 100) > 1e-6;
