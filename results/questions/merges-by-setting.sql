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
