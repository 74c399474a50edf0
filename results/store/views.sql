-- Derived values. A program with another text of this file replaces these views when it opens a database for writing,
-- and hides them behind its own when it opens one for reading. Each view is one statement, which begins with CREATE
-- VIEW at the start of a line. results/README.md says what a row of each is, results/metrics.h what "-- each" is.

-- What every table and figure calls a run; given: its suite says so.
CREATE VIEW names AS
SELECT run, coalesce(given, method || iif(policy = 'none', '', ', ' || policy)) AS row, given IS NOT NULL AS given
FROM (SELECT runs.run AS run, method, policy,
             coalesce(rows.value, labels.value || iif(imported.value = 'true', ' (imported)', '')) AS given
      FROM runs
      LEFT JOIN settings AS rows ON rows.run = runs.run AND rows.key = 'run.row'
      LEFT JOIN settings AS labels ON labels.run = runs.run AND labels.key = 'method.label'
      LEFT JOIN settings AS imported ON imported.run = runs.run AND imported.key = 'method.imported');

-- What a run's accuracies are of; only those of one scope are ranked: the setting, and the tasks with their test images in the order
-- in which they are trained.
CREATE VIEW scopes AS
SELECT run, setting, setting || ': ' || (SELECT group_concat(name || ' ' || test_images, ', ')
                                FROM (SELECT name, test_images FROM tasks WHERE tasks.run = runs.run ORDER BY task)) AS scope
FROM runs;

CREATE VIEW matrix AS
SELECT evaluations.run AS run, after_task, trained.name AS trained, evaluations.task AS task, tasks.name AS name,
       correct, images, 100.0 * correct / images AS accuracy
FROM evaluations
JOIN tasks USING (run, task)
LEFT JOIN tasks AS trained ON trained.run = evaluations.run AND trained.task = evaluations.after_task;

-- In class- and domain-incremental runs the accuracy over all images of the tasks so far.
CREATE VIEW mean_accuracy AS
SELECT run, after_task, iif(weighted, 100.0 * sum(correct) / sum(images), avg(100.0 * correct / images)) AS accuracy
FROM (SELECT run, tasks, setting IN ('class_incremental', 'domain_incremental') AS weighted FROM runs)
JOIN evaluations USING (run)
WHERE NOT weighted OR after_task NOT BETWEEN 0 AND task - 1
GROUP BY run, after_task
HAVING count(*) = iif(weighted AND after_task >= 0, after_task + 1, tasks);

-- Where all classes compete: images of classes seen so far, and of those to come, each compared with all of them.
CREATE VIEW seen_unseen AS
SELECT run, after_task, seen, unseen, CASE WHEN seen + unseen = 0 THEN 0 ELSE 2 * seen * unseen / (seen + unseen) END AS harmonic, accuracy
FROM (SELECT run, after_task, 100.0 * sum(correct) / sum(images) AS accuracy,
             100.0 * sum(correct) FILTER (WHERE task <= after_task) / sum(images) FILTER (WHERE task <= after_task) AS seen,
             100.0 * sum(correct) FILTER (WHERE task > after_task) / sum(images) FILTER (WHERE task > after_task) AS unseen
      FROM runs
      JOIN evaluations USING (run)
      WHERE setting = 'x_tail' AND after_task >= 0
      GROUP BY run, after_task
      HAVING count(*) = tasks);

CREATE VIEW metric_list AS
SELECT 0 AS place, '' AS name, '' AS title, '' AS formula, '' AS source, '' AS best, 0.0 AS low, 0.0 AS high, '' AS tags WHERE false
-- each: UNION ALL SELECT {place}, '{name}', '{title}', '{formula}', '{source}', '{best}', {low}, {high}, '{tags}'
;

CREATE VIEW task_metrics AS
SELECT run, task
-- each: , {sql} AS {name}
FROM (SELECT run, tasks, setting = 'class_incremental' AS accumulates FROM runs)
JOIN (SELECT run, task, after_task, 100.0 * correct / images AS accuracy FROM evaluations) USING (run)
GROUP BY run, task
HAVING count(*) FILTER (WHERE after_task >= 0 AND after_task < tasks) = iif(accumulates, tasks - task, tasks);

-- In class- and domain-incremental runs average is Avg, the mean over the rows of the accuracy over all images so far.
CREATE VIEW metrics AS
SELECT run
-- each: , iif(means.{name} IS NULL, NULL, coalesce(seen.{name}, means.{name})) AS {name}
FROM (SELECT run
-- each: , CASE WHEN count({name}) = count(*) - {skips} THEN avg({name}) END AS {name}
      FROM task_metrics
      GROUP BY run
      HAVING count(*) = (SELECT tasks FROM runs WHERE runs.run = task_metrics.run)) AS means
LEFT JOIN (SELECT run
-- each: , iif({images}, {sql}, NULL) AS {name}
           FROM (SELECT run, tasks, NULL AS task, after_task, 100.0 * sum(correct) / sum(images) AS accuracy
                 FROM (SELECT run, tasks FROM runs WHERE setting IN ('class_incremental', 'domain_incremental'))
                 CROSS JOIN evaluations USING (run)
                 WHERE after_task NOT BETWEEN 0 AND evaluations.task - 1
                 GROUP BY run, after_task)
           GROUP BY run) AS seen USING (run);

CREATE VIEW leaderboard AS
SELECT max(suite) AS suite, suite_hash, max(setting) AS setting, max(method) AS method, max(policy) AS policy,
       max(selector) AS selector, max(selection) AS selection, max(task_order) AS task_order, max(model) AS model,
       count(*) AS runs
-- each main: , avg({name}) AS {name}, (min({name}) < max({name})) * max(0, avg({name} * {name}) - avg({name}) * avg({name})) * count(*) / nullif(count(*) - 1, 0) AS {name}_variance
-- each other: , avg({name}) AS {name}
FROM runs
JOIN metrics USING (run)
WHERE status = 'finished'
GROUP BY suite_hash;

CREATE VIEW frozen_experts AS
SELECT run, encoder, block, target AS expert, min(task) AS task
FROM expert_events
WHERE event = 'freeze'
GROUP BY run, encoder, block, target;

CREATE VIEW frozen_counts AS
SELECT run, task, encoder, block,
       sum(count(*)) OVER (PARTITION BY run, encoder, block ORDER BY task) AS frozen
FROM frozen_experts
GROUP BY run, task, encoder, block;

CREATE VIEW events AS
SELECT run, task, name, iteration, encoder, block, event, t1, t2, target, reason, mixture, position
FROM expert_events
JOIN tasks USING (run, task);

CREATE VIEW expert_usage AS
SELECT counts.run AS run, counts.task AS task, name, counts.encoder AS encoder, counts.block AS block,
       counts.expert AS expert, count,
       100.0 * count / nullif(sum(count) OVER (PARTITION BY counts.run, counts.task, counts.encoder, counts.block), 0)
           AS share,
       coalesce(frozen_experts.task <= counts.task, 0) AS frozen
FROM expert_counts AS counts
JOIN tasks USING (run, task)
LEFT JOIN frozen_experts ON (frozen_experts.run, frozen_experts.encoder, frozen_experts.block, frozen_experts.expert) =
                            (counts.run, counts.encoder, counts.block, counts.expert);

CREATE VIEW class_usage AS
SELECT experts.run AS run, experts.task AS task, tasks.name AS name, after_task, block, experts.class AS class,
       task_classes.name AS class_name, expert, count, 100.0 * count / sum(count) OVER of_class AS share,
       gate * count / sum(count) OVER of_class AS mean_gate
FROM class_experts AS experts
JOIN tasks USING (run, task)
LEFT JOIN task_classes ON (task_classes.run, task_classes.task, task_classes.class) =
                          (experts.run, experts.task, experts.class)
WINDOW of_class AS (PARTITION BY experts.run, experts.task, after_task, block, experts.class);

CREATE VIEW patch_usage AS
SELECT run, task, name, after_task, image, file, block, patch.key % width AS x, patch.key / width AS y,
       patch.value AS expert
FROM patch_experts
JOIN tasks USING (run, task)
JOIN json_each(experts) AS patch;

-- use is empty where no iteration followed, or the task has not ended.
CREATE VIEW merge_use AS
SELECT merge_effects.run AS run, task, name, iteration, encoder, block, position, target, t1, t2, iterations,
       1.0 * chosen / nullif(choices, 0) *
           (SELECT nullif(count(*), 0) FROM expert_counts
            WHERE (expert_counts.run, expert_counts.task, expert_counts.encoder, expert_counts.block) =
                  (merge_effects.run, merge_effects.task, merge_effects.encoder, merge_effects.block)) AS use,
       EXISTS (
           SELECT 1 FROM expert_events AS later
           WHERE (later.run, later.task, later.encoder, later.block, later.target) =
                 (merge_effects.run, merge_effects.task, merge_effects.encoder, merge_effects.block, expert_events.target)
                 AND later.event = 'merge' AND later.iteration > merge_effects.iteration) AS overwritten,
       (SELECT 1.0 * sum(count) FILTER (WHERE expert = expert_events.target) * count(*) / nullif(sum(count), 0)
        FROM expert_counts
        WHERE (expert_counts.run, expert_counts.task, expert_counts.encoder, expert_counts.block) =
              (merge_effects.run, merge_effects.task + 1, merge_effects.encoder, merge_effects.block)) AS next_use,
       loss_before, loss_after, distance
FROM merge_effects
JOIN tasks USING (run, task)
JOIN expert_events USING (run, task, iteration, encoder, block, position);

CREATE VIEW selector AS
SELECT router_choices.run AS run, after_task, router_choices.task AS task, tasks.name AS name, router,
       chosen.name AS chosen, count,
       100.0 * count / sum(count) OVER (PARTITION BY router_choices.run, after_task, router_choices.task) AS share,
       threshold -- of the chosen router
FROM router_choices
JOIN tasks USING (run, task)
LEFT JOIN selector_thresholds ON selector_thresholds.run = router_choices.run
                                 AND selector_thresholds.task = router_choices.router
LEFT JOIN tasks AS chosen ON chosen.run = router_choices.run AND chosen.task = router_choices.router;

CREATE VIEW throughput AS
SELECT run, phase, sum(seconds) AS seconds, sum(iterations) AS iterations, sum(images) AS images,
       sum(seconds) FILTER (WHERE iterations > 0) / sum(iterations) AS seconds_per_iteration,
       sum(images) / sum(seconds) FILTER (WHERE images > 0) AS images_per_second, max(peak_bytes) AS peak_bytes
FROM timings
GROUP BY run, phase;

-- What a run costs. Its machine is the GPU, or the processor and its threads, of all its sessions; empty: of several.
CREATE VIEW costs AS
WITH machines AS (
    SELECT run, iif(min(coalesce(gpu, cpu)) = max(coalesce(gpu, cpu)), max(coalesce(gpu, cpu)), NULL) AS machine, count(gpu) > 0 AS on_gpu
    FROM sessions
    GROUP BY run
), counted AS (
    SELECT run, avg(step) AS step_operations, avg(image) AS image_operations FROM operations GROUP BY run
), taken AS (
    SELECT run, sum(seconds) FILTER (WHERE iterations > 0) / sum(iterations) AS seconds_per_step
    FROM timings
    WHERE phase = 'train'
    GROUP BY run
), used AS (
    SELECT run, sum(encoded) / sum(encoding) AS images_per_second, max(device_bytes) AS device_bytes FROM resources GROUP BY run
)
SELECT run, machine, trainable_parameters AS parameters, step_operations, image_operations, seconds_per_step, images_per_second,
       nullif(iif(on_gpu, device_bytes, (SELECT max(peak_bytes) FROM timings WHERE timings.run = runs.run)), 0) AS peak_bytes
FROM runs
LEFT JOIN machines USING (run)
LEFT JOIN counted USING (run)
LEFT JOIN taken USING (run)
LEFT JOIN used USING (run);
