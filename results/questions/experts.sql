-- Experts: their use, merges and freezes.
-- === experts
-- title: how often each expert was chosen, per task and block
-- empty: they have no experts that a router chooses, or trained no task
SELECT run, task, name, encoder, block, expert, count, share, frozen
FROM chosen
JOIN expert_usage USING (run)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task, encoder, block, expert
-- === events
-- title: merges, skips and freezes in their order
-- empty: nothing was merged, skipped or frozen
SELECT run, task, name, iteration, encoder, block, event, t1, t2, target, reason
FROM chosen
JOIN events USING (run)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task, iteration, encoder, block, position
-- === blocks
-- title: blocks of the experts that were frozen by the last task; with a dataset, by that task
-- empty: they have no experts that a router chooses, or trained no task
WITH latest AS (
    SELECT run, max(task) AS task
    FROM chosen
    JOIN expert_counts USING (run)
    JOIN tasks USING (run, task)
    WHERE :dataset IS NULL OR name = :dataset
    GROUP BY run
), blocks AS (
    SELECT run, task, encoder, block, ntile(3) OVER (PARTITION BY run, encoder ORDER BY block) AS third
    FROM latest
    JOIN expert_counts USING (run, task)
    GROUP BY run, encoder, block
), found AS (
    SELECT run, encoder, block, count(*) AS frozen, count(*) FILTER (WHERE frozen_experts.task = latest.task) AS added
    FROM latest
    JOIN frozen_experts USING (run)
    WHERE frozen_experts.task <= latest.task
    GROUP BY run, encoder, block
)
SELECT run, name AS after, encoder, CASE third WHEN 1 THEN 'first' WHEN 2 THEN 'middle' ELSE 'last' END AS part, block,
       coalesce(frozen, 0) AS frozen, coalesce(added, 0) AS added,
       avg(coalesce(frozen, 0)) OVER (PARTITION BY run, encoder, third) AS part_mean
FROM blocks
JOIN tasks USING (run, task)
LEFT JOIN found USING (run, encoder, block)
ORDER BY run, encoder, block
-- === merge-counts
-- title: merges, skips by their reasons and freezes of each block, per run, means over finished seeds
-- empty: nothing was merged, skipped or frozen
-- column: row,seeds once
-- column: hash hidden
-- column: * right 1
-- block: hash
-- wide: title value
WITH seeds AS (
    SELECT suite_hash AS hash, count(*) AS seeds FROM chosen WHERE status = 'finished' GROUP BY suite_hash
), counted AS (
    SELECT suite_hash AS hash, encoder, block, CASE event WHEN 'merge' THEN 'merges' WHEN 'freeze' THEN 'frozen'
                                               ELSE 'skipped: ' || coalesce(replace(reason, '_', ' '), 'no reason') END AS title, count(*) AS count
    FROM chosen
    JOIN events USING (run)
    WHERE status = 'finished' AND (:dataset IS NULL OR name = :dataset)
    GROUP BY suite_hash, encoder, block, title
)
SELECT hash, label AS row, seeds, encoder, block, title, 1.0 * coalesce(count, 0) / seeds AS value
FROM (SELECT DISTINCT hash, encoder, block FROM counted)
JOIN (SELECT DISTINCT title FROM counted)
JOIN seeds USING (hash)
JOIN labels USING (hash)
LEFT JOIN counted USING (hash, encoder, block, title)
ORDER BY labels.run, encoder, block, title <> 'merges', title <> 'frozen', title
-- === merges
-- title: what became of each merge: use of the merged expert, loss, distance; with --by, a row per setting
-- empty: nothing is known of merges in them: their merge.policy is none, none came due, or merge.analysis was off; mtil
-- empty: query events lists what was merged, skipped and frozen
SELECT run, task, name, iteration, encoder, block, target, t1, t2, iterations, use, overwritten, next_use, loss_before,
       loss_after, distance
FROM chosen
JOIN merge_use USING (run)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, task, iteration, encoder, block, position
-- instead:
SELECT 'merges-by-setting' WHERE EXISTS (SELECT 1 FROM asked)
-- === merges-by-setting
-- empty: nothing is known of merges in them: their merge.policy is none, none came due, or merge.analysis was off; mtil
-- empty: query events lists what was merged, skipped and frozen
-- column: part,keys hidden
-- column: runs 0
-- column: merges,followed,unused,overwritten,transfer 1
-- column: use,next_use,loss_before,loss_after,distance 3
-- column: r,r_low,r_high,r_next,r_next_low,r_next_high 2
-- block: part
-- wide: title value
WITH keyed AS MATERIALIZED ( -- the places of a run's settings among all, in the order of their values
    SELECT run, group_concat(printf('%06d', place_of_value), ' ') AS keys
    FROM (
        SELECT chosen.run AS run, dense_rank() OVER (PARTITION BY place ORDER BY value) AS place_of_value
        FROM chosen
        CROSS JOIN asked
        LEFT JOIN settings ON settings.run = chosen.run AND settings.key = asked.key
        ORDER BY chosen.run, place
    )
    GROUP BY run
), per_run AS MATERIALIZED ( -- losses are of the same merges, those that iterations of their task followed
    SELECT chosen.run AS run, suite, max(keys) AS keys,
           count(*) AS merges, count(use) AS followed, avg(use) AS use, 100.0 * avg(use = 0) AS unused,
           100.0 * avg(overwritten) AS overwritten, avg(next_use) FILTER (WHERE NOT overwritten) AS next_use,
           avg(loss_before) FILTER (WHERE loss_after IS NOT NULL) AS loss_before, avg(loss_after) AS loss_after,
           avg(distance) AS distance, max(transfer) AS transfer
    FROM chosen
    JOIN keyed USING (run)
    JOIN merge_use USING (run)
    LEFT JOIN metrics USING (run)
    WHERE :dataset IS NULL OR name = :dataset
    GROUP BY chosen.run
), apart AS ( -- within groups: distances from their means, which say nothing about what use does
    SELECT 0 AS part, *, use AS x, transfer AS y, next_use AS x_next, transfer AS y_next FROM per_run
    UNION ALL
    SELECT 1, NULL, 'within groups', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           use - avg(use) FILTER (WHERE transfer IS NOT NULL) OVER pair,
           transfer - avg(transfer) FILTER (WHERE use IS NOT NULL) OVER pair,
           next_use - avg(next_use) FILTER (WHERE transfer IS NOT NULL) OVER pair,
           transfer - avg(transfer) FILTER (WHERE next_use IS NOT NULL) OVER pair
    FROM per_run
    WINDOW pair AS (PARTITION BY suite, keys)
), groups AS MATERIALIZED (
    SELECT part, suite, keys, min(run) AS run, count(*) AS runs, avg(merges) AS merges, avg(followed) AS followed, avg(use) AS use,
           avg(unused) AS unused, avg(overwritten) AS overwritten, avg(next_use) AS next_use,
           avg(loss_before) AS loss_before, avg(loss_after) AS loss_after, avg(distance) AS distance,
           avg(transfer) AS transfer, correlation(x, y) AS r, count(x + y) AS n,
           correlation(x_next, y_next) AS r_next, count(x_next + y_next) AS n_next
    FROM apart
    GROUP BY part, suite, keys
), lines AS ( -- held: means that were subtracted, but one
    SELECT groups.*, held, held_next, iif(n > held + 2, r, NULL) AS known, iif(n_next > held_next + 2, r_next, NULL) AS known_next
    FROM groups
    JOIN (SELECT 0 AS part, 0 AS held, 0 AS held_next
          UNION ALL
          SELECT 1, sum(n > 0) - 1, sum(n_next > 0) - 1 FROM groups WHERE part = 0 HAVING count(*) > 1) USING (part)
)
SELECT part, keys, suite, asked.key AS title, settings.value AS value, runs, merges, followed, use, unused, overwritten,
       next_use, loss_before, loss_after, distance, transfer, known AS r, fisher_low(known, n, held) AS r_low,
       fisher_high(known, n, held) AS r_high, known_next AS r_next, fisher_low(known_next, n_next, held_next) AS r_next_low,
       fisher_high(known_next, n_next, held_next) AS r_next_high
FROM lines
CROSS JOIN asked
LEFT JOIN settings ON settings.run = lines.run AND settings.key = asked.key
ORDER BY part, suite, keys, asked.place
-- === merged-experts
-- title: experts by how often they were merged into, and from; most merged first
-- empty: their merge.policy is none, or no merge came due
WITH roles AS (
    SELECT run, task, encoder, block, CASE role WHEN 0 THEN target WHEN 1 THEN t1 ELSE t2 END AS expert, role = 0 AS target
    FROM chosen
    CROSS JOIN expert_events USING (run)
    JOIN (SELECT 0 AS role UNION ALL SELECT 1 UNION ALL SELECT 2)
    WHERE event = 'merge'
)
SELECT run, policy, seed, encoder, block, expert, sum(target) AS merged_into, sum(NOT target) AS merged_from,
       count(DISTINCT roles.task) AS tasks, frozen.task AS frozen_after
FROM roles
JOIN chosen USING (run)
LEFT JOIN frozen_experts AS frozen USING (run, encoder, block, expert)
WHERE expert IS NOT NULL AND (:dataset IS NULL OR (run, roles.task) IN (SELECT run, task FROM tasks WHERE name = :dataset))
GROUP BY run, encoder, block, expert
ORDER BY merged_into DESC, merged_from DESC, run, encoder, block, expert
-- === class-experts
-- title: experts that the images of each class choose in the last test; with a dataset, class × expert in each block
-- empty: experts are counted by class where evaluation.per_image keeps results and routers choose
SELECT run, task, name, block, class, class_name, expert, count, share, mean_gate
FROM chosen
JOIN class_usage USING (run)
ORDER BY run, task, block, class, expert
-- instead:
SELECT 'class-experts-of-dataset' WHERE :dataset IS NOT NULL
-- === class-experts-of-dataset
-- column: run,block once
-- column: task,sheet hidden
-- column: * right 1
-- block: sheet
-- wide: expert share
WITH used AS MATERIALIZED (
    SELECT class_usage.* FROM chosen JOIN class_usage USING (run) WHERE name = :dataset
), experts(expert) AS (
    SELECT 0 WHERE EXISTS (SELECT 1 FROM used)
    UNION ALL
    SELECT expert + 1 FROM experts WHERE expert < (SELECT max(expert) FROM used)
)
SELECT run, run || ' ' || block AS sheet, task, block, class, max(class_name) AS class_name,
       CAST(experts.expert AS TEXT) AS expert, coalesce(max(share) FILTER (WHERE used.expert = experts.expert), 0.0) AS share
FROM used
CROSS JOIN experts
GROUP BY run, task, block, class, experts.expert
ORDER BY run, block, task, class, experts.expert
-- === trajectory
-- title: where each expert was at the end of each task, on the two main directions of all of its block, with the spread of experts
-- empty: sketches of experts are stored with run.trajectory_every
-- column: run,encoder,block,task,name,iteration once
-- column: x,y,distance,spread 4
-- column: sheet hidden
-- block: sheet
WITH followed AS (
    SELECT run FROM chosen
),
-- include: trajectories
SELECT run, encoder, block, task, name, iteration, expert, x, y, distance, spread, event,
       run || encoder || block || ' ' || task || ' ' || iteration AS sheet
FROM trajectories
JOIN tasks USING (run, task)
WHERE :dataset IS NULL OR name = :dataset
ORDER BY run, encoder, block, task, iteration, expert
