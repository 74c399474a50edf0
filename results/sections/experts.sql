-- Sections 60 to 111: experts.
-- === frozen
-- section: 60 Frozen Frozen experts
-- title: Frozen experts per block
-- draw: line points 1
-- caption: Means over the blocks of an encoder and over seeds; bands from the least to the greatest seed.
-- x: tasks trained
-- y: frozen experts
-- range: 0
-- include: frozen
SELECT encoder || ' encoder' AS panel, label AS series, colour, task + 1 AS x, avg(frozen) AS y, min(frozen) AS low,
       max(frozen) AS high
FROM (SELECT run, encoder, task, avg(frozen) AS frozen FROM counted GROUP BY run, encoder, task)
JOIN drawn USING (run)
GROUP BY encoder, number, task
ORDER BY encoder, number, task
-- === frozen-blocks
-- section: 61
-- title: {choice}
-- draw: heat 1
-- name: frozen-{number}
-- choice: Configuration
-- caption: Frozen experts of each block after each task, of {experts}; mean over {seeds}, shaded from 0 to all.
-- x: task
-- y: block
-- value: frozen experts
-- range: 0 {experts}
-- wide: column value
-- include: frozen
SELECT label AS choice, number, seeds, max(experts) OVER (PARTITION BY number) AS experts, encoder || ' ' || block AS block,
       board.name AS column, avg(frozen) AS value
FROM counted
JOIN configurations USING (number)
JOIN board USING (task)
GROUP BY number, encoder, counted.block, task
ORDER BY number, encoder, counted.block, task
-- === experts
-- section: 70 Experts Use of experts
-- title: {choice}
-- draw: heat 1
-- name: experts-{number}
-- choice: Configuration
-- caption: Effective number of experts of each block in each task, of {experts}: exp of the entropy of how often each was chosen;
-- caption: mean over {seeds}.
-- x: task
-- y: block
-- value: effective experts
-- range: 1 {experts}
-- wide: column value
WITH effective AS ( -- per run; entropy in bits
    SELECT number, encoder, block, task, pow(2.0, entropy(count)) AS effective, max(expert) + 1 AS experts
    FROM drawn
    JOIN expert_counts USING (run)
    GROUP BY run, encoder, block, task
    HAVING sum(count) > 0
)
SELECT label AS choice, number, seeds, max(max(experts)) OVER (PARTITION BY number) AS experts, encoder || ' ' || block AS block,
       board.name AS column, avg(effective) AS value
FROM effective
JOIN configurations USING (number)
JOIN board USING (task)
GROUP BY number, encoder, block, task
ORDER BY number, encoder, effective.block, task
-- === usage
-- section: 71
-- title: {choice}
-- draw: heat
-- name: usage-{number}
-- choice: Configuration
-- caption: How often each expert was chosen. A panel per block, a row per expert, a column per task. Dots: frozen once the task
-- caption: has ended. Experts of different seeds have nothing to do with one another, so this is one run.
-- x: task
-- y: expert
-- value: share, %
-- range: 0
WITH detailed AS MATERIALIZED (
    SELECT drawn.* FROM drawn
    WHERE turn = 0 AND run IN (SELECT run FROM expert_counts)
    ORDER BY number
    LIMIT 2
), freezes AS MATERIALIZED (
    SELECT run, encoder, block, target AS expert, min(task) AS task
    FROM detailed
    JOIN expert_events USING (run)
    WHERE event = 'freeze'
    GROUP BY run, encoder, block, target
)
SELECT label || ', seed ' || seed AS choice, number, encoder || ' ' || block AS panel, expert AS row, used.task + 1 AS column,
       100.0 * count / nullif(sum(count) OVER (PARTITION BY run, used.task, encoder, block), 0) AS value,
       freezes.task <= used.task AS framed
FROM detailed
JOIN expert_counts AS used USING (run)
LEFT JOIN freezes USING (run, encoder, block, expert)
ORDER BY number, encoder, block, expert, used.task
-- note:
SELECT 'Experts one by one are shown of the best 2 configurations.'
WHERE (SELECT count(DISTINCT number) FROM drawn JOIN expert_counts USING (run)) > 2
-- === classes
-- section: 80 Classes Experts of each class
-- draw: table 1
-- name: served
-- caption: {of}: effective number of experts, of {most}, that the test images choose in the last test, all of them and those of
-- caption: one class (exp of the entropy, for classes of its mean). Where the two numbers are equal, the choice does not
-- caption: depend on the class. Images without a router are left out.
-- include: served
, of_classes AS (
    SELECT block, sum(count) AS count, entropy(count) AS bits FROM usage GROUP BY block, task, class
), of_all AS (
    SELECT block, entropy(count) AS bits FROM (SELECT block, sum(count) AS count FROM usage GROUP BY block, expert) GROUP BY block
)
SELECT of, (SELECT max(expert) + 1 FROM experts) AS most, 'image ' || block AS block,
       pow(2.0, of_all.bits) AS "experts of all images",
       pow(2.0, sum(of_classes.bits * count) / sum(count)) AS "of one class"
FROM of_all
JOIN of_classes USING (block)
JOIN served
GROUP BY block
ORDER BY block
-- === classes-drawn
-- section: 81
-- title: {thing} of each {unit}
-- draw: heat
-- name: {name}
-- choice: Task
-- caption: {of}: {what} of each expert among the choices of test images. A panel per block, a column per expert; empty: never
-- caption: chosen. A column that is dark in few rows is an expert for these; rows that look alike are served alike.{more}
-- x: expert
-- value: {what}
-- range: 0
-- include: served
, drawings(drawing, thing, what) AS (
    VALUES ('served', 'Experts', 'share, %'), ('gates', 'Mean gates', 'mean gate')
), room AS ( -- classes of a task that are drawn: an answer has at most ten million cells
    SELECT max(1, min(128, 300000 * count(DISTINCT class) / count(*))) AS most FROM usage
), cells AS MATERIALIZED ( -- all tasks (place -1), and the classes of each
    SELECT -1 AS place, block, task + 1 AS line, expert, 100.0 * sum(count) / sum(sum(count)) OVER of_task AS share,
           sum(gate * images) / sum(sum(count)) OVER of_task AS gate
    FROM usage
    WHERE (SELECT count(*) FROM board) > 1
    GROUP BY block, task, expert
    WINDOW of_task AS (PARTITION BY block, task)
    UNION ALL
    SELECT task, block, class, expert, share, gate FROM usage JOIN board USING (task) JOIN room WHERE wanted AND class < most
), drawn_cells AS (
    SELECT place, drawing, block, line, expert, iif(drawing = 'gates', gate, share) AS value
    FROM cells
    JOIN drawings
    WHERE drawing = 'served' OR gate IS NOT NULL
), all_cells AS ( -- experts that nobody chose have their columns
    SELECT * FROM drawn_cells
    UNION ALL
    SELECT place, drawing, min(block), min(line), experts.expert, NULL FROM drawn_cells JOIN experts GROUP BY place, drawing, experts.expert
)
SELECT coalesce(board.name, 'all tasks') AS choice, drawing || '-' || iif(place < 0, 'tasks', place + 1) AS name, thing,
       iif(place < 0, 'task', 'class of ' || board.name) AS unit,
       iif(place >= 0 AND classes > 20, ' A row per class, by its number: mtil query class-experts has the names.', '') AS more, of, what,
       'image ' || block AS panel, coalesce(iif(place < 0, learned.name, iif(classes > 20, NULL, task_classes.name)), line) AS row,
       expert AS column, value
FROM (SELECT *, max(line) OVER (PARTITION BY place) + 1 AS classes FROM all_cells)
JOIN drawings USING (drawing)
JOIN served
LEFT JOIN board ON board.task = place
LEFT JOIN board AS learned ON learned.task = line - 1
LEFT JOIN task_classes ON (task_classes.run, task_classes.task, task_classes.class) = (served.run, place, line)
ORDER BY place, drawing DESC, block, line, expert
-- === patches
-- section: 90 Patches Experts of each patch
-- title: Experts of patches of {choice} in block {block}
-- draw: cells
-- name: patches-{number}-{block}
-- choice: Task
-- caption: {of}: the expert that each patch chooses first in the last test. A panel per test image, by its place in the list and
-- caption: its file{cut}; experts in the order of their patches. Experts of two blocks have nothing to do with
-- caption: one another.
WITH shown_run AS MATERIALIZED (
    SELECT run, label || ', seed ' || seed AS of FROM drawn
    WHERE turn = 0 AND run IN (SELECT run FROM patch_experts)
    ORDER BY number
    LIMIT 1
), pictures AS MATERIALIZED (
    SELECT task, block, image, file, width, experts, dense_rank() OVER (PARTITION BY task, block ORDER BY image) AS place
    FROM shown_run
    JOIN patch_experts USING (run)
    JOIN board USING (task)
    WHERE wanted
), room AS ( -- images of a task that are drawn: an answer has at most ten million cells
    SELECT max(1, CAST(800000.0 * max(place) / sum(json_array_length(experts)) AS INTEGER)) AS most, max(place) AS all_of_them
    FROM pictures
), patches AS MATERIALIZED (
    SELECT task, block, image, file, patch.key % width AS "column", patch.key / width AS "row", patch.value AS expert
    FROM pictures
    JOIN room
    JOIN json_each(pictures.experts) AS patch
    WHERE place <= most
), ranks AS MATERIALIZED ( -- the experts with the most patches come first; the last of six colours is that of all others
    SELECT task, block, expert, row_number() OVER (PARTITION BY task, block ORDER BY count(*) DESC, expert) - 1 AS place,
           count(*) OVER (PARTITION BY task, block) AS experts
    FROM patches
    GROUP BY task, block, expert
)
SELECT board.name AS choice, task + 1 AS number, block, of,
       iif(most < all_of_them, ', the first ' || most || ' of a task', '') AS cut, image || '  ' || file AS panel,
       iif(place >= 5 AND experts > 6, 'the other ' || (experts - 5) || ' experts', 'expert ' || expert) AS series,
       min(place, 5) AS colour, "column", "row", expert AS value
FROM patches
JOIN ranks USING (task, block, expert)
JOIN board USING (task)
JOIN shown_run
JOIN room
ORDER BY task, block, image, "row", "column"
-- === events
-- section: 100 Merges Merges and freezes
-- title: What happened to the experts of each encoder in each task
-- draw: line points 1
-- caption: All blocks of an encoder together, means over seeds. A merge is skipped when no expert is free, or the one to be replaced
-- caption: is among those that are merged.
-- x: task
-- y: events per run
-- range: 0
WITH kinds(kind, event, title) AS (
    VALUES (0, 'merge', 'merges'), (1, 'skip', 'skipped merges'), (2, 'freeze', 'experts frozen')
), happened AS MATERIALIZED (
    SELECT number, encoder, task, event, count(*) AS count
    FROM drawn
    JOIN expert_events USING (run)
    GROUP BY number, encoder, task, event
)
SELECT kinds.title || ', ' || encoders.encoder AS panel, label AS series, colour, board.task + 1 AS x,
       1.0 * coalesce(count, 0) / used AS y
FROM configurations
JOIN kinds
JOIN (SELECT DISTINCT encoder FROM happened) AS encoders
JOIN board
LEFT JOIN happened USING (number, encoder, task, event)
WHERE number IN (SELECT number FROM happened)
ORDER BY encoders.encoder, kind, number, board.task
-- === merges
-- section: 110 Merged Use of merged experts
-- title: Whether merged experts are used
-- draw: interval own_ranges 2
-- caption: Use in the 50 iterations after each merge, fewer where the task ends, and, of merged experts that no later merge
-- caption: overwrites, in the whole next task, whose router is another. Means over the merges of a run, then over runs, with 95%
-- caption: intervals (Student); no interval where there is one run. The axes of the panels differ.
-- include: merges
SELECT panel, label AS series, colour, mean(value) AS y, max(0, mean(value) - half_width(value)) AS low,
       min(mean(value) + half_width(value), CASE part WHEN 1 THEN 100 WHEN 3 THEN 1 WHEN 4 THEN 100 ELSE 9e99 END) AS high
FROM (
    SELECT 0 AS part, 'use (1: an even share)' AS panel, number, use AS value FROM merged
    UNION ALL
    SELECT 1, 'merged experts never chosen, %', number, unused FROM merged
    UNION ALL
    SELECT 2, 'use in the next task', number, next_use FROM merged
    UNION ALL
    SELECT 3, 'distance to sources', number, distance FROM merged
    UNION ALL
    SELECT 4, 'Transfer, %', number, transfer FROM merged
)
JOIN configurations USING (number)
WHERE value IS NOT NULL
GROUP BY part, number
ORDER BY part, number
-- === merges-numbers
-- section: 111
-- draw: table wrapped 2
-- name: merges
-- caption: r: correlation of a run's mean use with its Transfer over the runs of the configuration, r next: of the use in the
-- caption: next task, with Fisher's 95% intervals, which fewer than four runs do not have. Each merge: mtil query merges.
-- column: "merged experts never chosen, %","Transfer, %" 1
-- include: merges
, pairs AS (
    SELECT label, number, count(*) AS runs, mean(use) AS use, mean(unused) AS unused, mean(next_use) AS next_use,
           mean(distance) AS distance, mean(transfer) AS transfer, correlation(use, transfer) AS r,
           count(*) FILTER (WHERE use IS NOT NULL AND transfer IS NOT NULL) AS n, correlation(next_use, transfer) AS r_next,
           count(*) FILTER (WHERE next_use IS NOT NULL AND transfer IS NOT NULL) AS n_next
    FROM merged
    JOIN configurations USING (number)
    GROUP BY number
)
SELECT label AS configuration, runs, use AS "use (1: an even share)", unused AS "merged experts never chosen, %",
       next_use AS "use in the next task", distance AS "distance to sources", transfer AS "Transfer, %", r,
       fisher_low(r, n, 0) AS "r from", fisher_high(r, n, 0) AS "r to", r_next AS "r next",
       fisher_low(r_next, n_next, 0) AS "r next from", fisher_high(r_next, n_next, 0) AS "r next to"
FROM pairs
ORDER BY pairs.number
-- === trajectory
-- section: 115 Paths Trajectories of experts
-- title: {encoder} block {block} of {label}
-- draw: line points 2
-- choice: Block
-- name: trajectory-{encoder}-{block}
-- caption: All parameters of each expert at the start, at each stored iteration and at the end of each task, on the two main directions of
-- caption: all of them, with {x_share}% and {y_share}% of the variance, by sketches of their parameters; the line joins the means of the
-- caption: experts. merged: since the point before. In the first seed of the best drawn configuration that has them.
-- x: first direction
-- y: second direction
WITH followed AS (
    SELECT run FROM drawn WHERE run IN (SELECT run FROM expert_sketches) ORDER BY number, turn LIMIT 1
),
-- include: trajectories
, points AS (
    SELECT encoder, block, 0 AS colour, 'mean of the experts' AS series, task, iteration, 0 AS expert, 0 AS gap, avg(x) AS x, avg(y) AS y,
           round(x_share, 1) AS x_share, round(y_share, 1) AS y_share
    FROM trajectories
    GROUP BY encoder, block, task, iteration
    UNION ALL -- points that are not joined: a gap behind each; where an expert stays, there is one
    SELECT encoder, block, CASE event WHEN 'merged' THEN 2 WHEN 'frozen' THEN 3 ELSE 1 END, coalesce(event, 'expert'), min(task), iteration,
           expert, gap, x, iif(gap, NULL, y), round(x_share, 1), round(y_share, 1)
    FROM trajectories
    CROSS JOIN (SELECT 0 AS gap UNION ALL SELECT 1)
    GROUP BY encoder, block, event, expert, x, y, gap
)
SELECT encoder || ' block ' || block AS choice, encoder, block, (SELECT label FROM drawn JOIN followed USING (run)) AS label, '' AS panel,
       series, colour, x, y, x_share, y_share
FROM points
ORDER BY encoder, block, colour, task, iteration, expert, gap
-- === spread
-- section: 116
-- title: Spread of experts
-- draw: line points 2
-- name: spread
-- caption: Mean distance of the experts of a block to their mean, of all parameters, after each task, as means over blocks and seeds; task 0: before the
-- caption: first one.
-- x: tasks trained
-- y: distance to the mean
SELECT encoder AS panel, label AS series, colour, iif(iteration = 0, 0, task + 1) AS x, mean(distance) AS y
FROM drawn
JOIN (SELECT *, max(iteration) OVER (PARTITION BY run, task) AS last FROM expert_sketches) USING (run)
WHERE iteration IN (0, last)
GROUP BY encoder, number, x
ORDER BY encoder, number, x
