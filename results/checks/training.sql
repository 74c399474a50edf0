-- What happened in training: steps, choices of experts, merges and freezes.
-- === steps
-- title: a task has the steps that its settings say
SELECT 'steps' AS what, run, 'task ' || task || ', last step' AS "where", planned AS expected,
       coalesce(last, 'none') AS found
FROM plan JOIN runs USING (run)
WHERE last > planned OR (status = 'finished' AND last IS NOT planned)
UNION ALL -- the first, the last, and every log_every-th
SELECT 'steps', run, 'task ' || task || ', rows',
       last / "run.log_every" + ("run.log_every" > 1) + (last > 1 AND last % "run.log_every" > 0) AS expected, logged
FROM plan JOIN facts USING (run)
WHERE last = planned AND logged <> expected AND (SELECT count(*) FROM sessions WHERE sessions.run = plan.run) = 1
-- === steps-rate
-- title: learning rates follow the schedule: a linear warm-up, then a cosine
SELECT 'steps' AS what, steps.run AS run, 'task ' || steps.task || ', iteration ' || iteration AS "where",
       CASE WHEN iteration <= warmup THEN rate * iteration / warmup
            WHEN iteration > schedule_end THEN 0.0
            ELSE rate * 0.5 * (1 + cos(3.14159265358979323846 * (iteration - 1 - warmup) / (schedule_end - warmup))) END
       AS expected,
       learning_rate AS found
FROM plan
CROSS JOIN steps USING (run, task)
WHERE abs(expected - learning_rate) > 1e-9 * rate
UNION ALL
SELECT 'steps', run, 'task ' || task || ', iteration ' || iteration, 'a learning rate', learning_rate
FROM steps
WHERE learning_rate < 0 OR abs(learning_rate) > 1e300
-- === skipped-steps
-- title: only runs that may skip steps have skipped any, and no more than a task has
SELECT 'skipped steps' AS what, run, 'task ' || task AS "where",
       iif("training.on_nan" = 'skip', 'up to ' || planned, 'none without training.on_nan: skip') AS expected, steps AS found
FROM skipped_steps
JOIN facts USING (run)
LEFT JOIN plan USING (run, task)
WHERE "training.on_nan" IS NOT 'skip' OR steps > planned
-- === timings
-- title: timings belong to a task's training and tests, and last for some time
SELECT 'times' AS what, run, phase || ', task ' || task AS "where", 'seconds of one of ' || tasks || ' tasks' AS expected,
       seconds AS found
FROM timings JOIN runs USING (run)
WHERE task >= tasks OR seconds < 0 OR seconds > 1e9 OR iterations < 0 OR images < 0
UNION ALL
SELECT 'times', run, 'train, task ' || task, last || ' iterations', total(timings.iterations) || ' iterations'
FROM plan JOIN timings USING (run, task)
WHERE phase = 'train' AND last = planned AND (SELECT count(*) FROM sessions WHERE sessions.run = plan.run) = 1
GROUP BY run, task
HAVING total(timings.iterations) <> last
-- === experts
-- title: the choices of a task's training are those of its steps
WITH blocks AS MATERIALIZED (
    SELECT run, task, encoder, block, count(*) AS experts, max(expert) AS highest, sum(count) AS choices
    FROM expert_counts
    GROUP BY run, task, encoder, block
), compared AS (
    SELECT *, max(experts) OVER (PARTITION BY run, encoder) AS most FROM blocks
)
SELECT 'experts' AS what, run, 'task ' || task || ', ' || encoder || ' block ' || block AS "where",
       max(most, coalesce("adapter.experts", 0)) || ' experts' AS expected, experts || ' experts' AS found
FROM compared JOIN facts USING (run)
WHERE experts <> max(most, coalesce("adapter.experts", 0)) OR highest <> experts - 1
UNION ALL
SELECT 'experts', run, 'task ' || task || ', ' || encoder || ' block ' || block,
       'a choice or up to ' || "adapter.top_k" || ' of ' || iif(encoder = 'image', images, planned * classes) || ' samples',
       choices || ' choices'
FROM compared JOIN facts USING (run) JOIN plan USING (run, task) -- a gate that underflows to 0 is no choice
WHERE last = planned AND "training.on_nan" = 'stop' AND "adapter.routing" = 'per_sample' AND "training.loss" = 'cross_entropy'
      AND "run.gpus" = 1 AND rate IS NOT NULL
      AND (choices > iif(encoder = 'image', images, planned * classes) * "adapter.top_k"
           OR (choices < iif(encoder = 'image', images, planned * classes) AND "adapter.capacity" = 0))
UNION ALL -- a single training on all tasks is recorded under the last task
SELECT 'experts', run, 'rows', 'counts of ' || trained || ' tasks', count(DISTINCT expert_counts.task) || ' tasks'
FROM (SELECT run, count(last) AS trained FROM plan GROUP BY run)
JOIN expert_counts USING (run)
JOIN runs USING (run)
WHERE status = 'finished'
GROUP BY run
HAVING count(DISTINCT expert_counts.task) <> trained
UNION ALL
SELECT 'experts', run, 'rows', 'counts', 'none'
FROM facts JOIN runs USING (run)
WHERE status = 'finished' AND trained AND "adapter.experts" IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM expert_counts WHERE expert_counts.run = facts.run)
-- === events
-- title: events name experts that are there, and their parts
WITH checked AS (
    SELECT expert_events.*, "adapter.experts" AS experts,
           CASE WHEN event = 'skip' AND reason IS NULL THEN 'a reason'
                WHEN event <> 'skip' AND target IS NULL THEN 'a target'
                WHEN min(coalesce(target, 0), coalesce(t1, 0), coalesce(t2, 0)) < 0
                     OR max(coalesce(target, 0), coalesce(t1, 0), coalesce(t2, 0)) >= "adapter.experts"
                THEN 'one of ' || "adapter.experts" || ' experts'
                WHEN mixture IS NOT NULL
                     AND (NOT json_valid(mixture)
                          OR EXISTS (SELECT 1 FROM json_each(iif(json_valid(mixture), mixture, '[]')) AS part
                                     WHERE json_extract(part.value, '$[0]') NOT BETWEEN 0 AND "adapter.experts" - 1))
                THEN 'weights of ' || "adapter.experts" || ' experts'
           END AS fault
    FROM expert_events JOIN facts USING (run)
)
SELECT 'events' AS what, run,
       'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration AS "where",
       fault AS expected,
       event || ' of ' || coalesce(t1, '-') || ' and ' || coalesce(t2, '-') || ' into ' || coalesce(target, '-')
             || coalesce(' by ' || mixture, '') AS found
FROM checked
WHERE fault IS NOT NULL
UNION ALL
SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       'positions 0 to ' || (count(*) - 1), min(position) || ' to ' || max(position)
FROM expert_events
GROUP BY run, task, iteration, encoder, block
HAVING min(position) <> 0 OR max(position) <> count(*) - 1
-- === events-schedule
-- title: experts are merged when merge.every says, and frozen behind a task's last step
WITH blocks AS ( -- those that have experts, with what happened in each
    SELECT expert_counts.run AS run, expert_counts.task AS task, expert_counts.encoder AS encoder,
           expert_counts.block AS block,
           count(DISTINCT iteration) FILTER (WHERE event <> 'freeze') AS merges,
           min(iteration) FILTER (WHERE event <> 'freeze') AS earliest,
           max(iteration) FILTER (WHERE event <> 'freeze') AS latest,
           total(iteration % "merge.every") FILTER (WHERE event <> 'freeze') AS off,
           count(DISTINCT target) FILTER (WHERE event = 'freeze') AS freezes,
           min(iteration) FILTER (WHERE event = 'freeze') AS frozen
    FROM expert_counts
    JOIN facts USING (run)
    LEFT JOIN expert_events USING (run, task, encoder, block)
    WHERE expert = 0
    GROUP BY expert_counts.run, expert_counts.task, encoder, block
), compared AS (
    SELECT blocks.*, last, facts.*,
           CASE WHEN coalesce("merge.policy", 'none') IN ('none', 'ewa') THEN 0
                WHEN "merge.schedule" = 'every' THEN last / "merge.every"
                WHEN "merge.schedule" = 'once' THEN last >= "merge.every"
                WHEN "merge.schedule" = 'end_of_task' THEN 1 END AS due
    FROM blocks
    JOIN facts USING (run)
    JOIN plan USING (run, task)
    WHERE last = planned AND NOT alone
)
SELECT 'events' AS what, run, 'task ' || task || ', ' || encoder || ' block ' || block AS "where",
       coalesce(due, 'some') || ' merges or skips, ' || coalesce("merge.schedule", '-') || ' '
       || coalesce("merge.every", '-') || ', up to step ' || last AS expected,
       merges || ' from ' || coalesce(earliest, '-') || ' to ' || coalesce(latest, '-') AS found
FROM compared
WHERE (merges <> due AND NOT ("merge.policy" = 'downstream' AND merges = 0)
                           AND NOT ("merge.policy" = 'external' AND merges < due)) OR latest > last
      OR ("merge.schedule" IN ('every', 'plateau') AND off > 0)
      OR ("merge.schedule" = 'end_of_task' AND earliest < last)
UNION ALL
SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block,
       CASE "adapter.freeze" WHEN 'share' THEN 'some' WHEN 'none' THEN 0 ELSE "adapter.freeze_top_k" END
       || ' freezes after step ' || last,
       freezes || ' after step ' || coalesce(frozen, '-')
FROM compared
WHERE freezes <> CASE "adapter.freeze" WHEN 'share' THEN freezes WHEN 'none' THEN 0 ELSE "adapter.freeze_top_k" END
      OR frozen < last
UNION ALL
SELECT 'events', run, 'task ' || task || ', ' || encoder || ' block ' || block,
       event || iif(event = 'freeze', ' after step ', ' up to step ') || last, 'after step ' || iteration
FROM expert_events JOIN plan USING (run, task)
WHERE last = planned AND (iteration > last OR (event = 'freeze' AND iteration < last))
-- === events-frozen
-- title: a frozen expert is never written again, for the frozen set only grows
SELECT 'frozen' AS what, merges.run AS run,
       'task ' || merges.task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration AS "where",
       'expert ' || target || ' as it was frozen after task ' || freezes.task AS expected, 'merged into' AS found
FROM (SELECT * FROM expert_events WHERE event = 'merge') AS merges
JOIN (SELECT run, encoder, block, target, min(task) AS task FROM expert_events WHERE event = 'freeze'
      GROUP BY run, encoder, block, target) AS freezes USING (run, encoder, block, target)
WHERE merges.task > freezes.task
-- === effects
-- title: every merge has its effect, whose shares are within their range
SELECT 'effects' AS what, run,
       'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration AS "where",
       'a merge' AS expected, coalesce(event, 'nothing') AS found
FROM merge_effects
LEFT JOIN expert_events USING (run, task, iteration, encoder, block, position)
WHERE event IS NOT 'merge'
UNION ALL
SELECT 'effects', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       'an effect', 'none'
FROM facts
JOIN plan USING (run)
CROSS JOIN expert_events USING (run, task)
LEFT JOIN merge_effects USING (run, task, iteration, encoder, block, position)
WHERE last = planned AND "merge.analysis" = 'true' AND event = 'merge' AND known IS NULL
UNION ALL
SELECT 'effects', run, 'task ' || task || ', ' || encoder || ' block ' || block || ', iteration ' || iteration,
       min(50, known - iteration) || ' iterations, up to ' || "adapter.top_k" || ' choices of a sample, a distance up to 1',
       merge_effects.iterations || ' iterations, ' || choices || ' choices, ' || coalesce(distance, '-')
FROM merge_effects
JOIN facts USING (run)
LEFT JOIN plan USING (run, task)
WHERE distance NOT BETWEEN 0 AND 1.000001 OR chosen > choices OR known < iteration OR iterations > known - iteration
      OR known > planned + 1
      OR (choices > iterations * iif(encoder = 'image', batch, classes) * "adapter.top_k"
          AND "adapter.routing" = 'per_sample' AND "training.loss" = 'cross_entropy' AND "run.gpus" = 1 AND rate IS NOT NULL)
