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
), groups AS (
    SELECT suite, keys, min(run) AS run, count(*) AS runs, avg(merges) AS merges, avg(followed) AS followed, avg(use) AS use,
           avg(unused) AS unused, avg(overwritten) AS overwritten, avg(next_use) AS next_use,
           avg(loss_before) AS loss_before, avg(loss_after) AS loss_after, avg(distance) AS distance,
           avg(transfer) AS transfer, correlation(use, transfer) AS r,
           count(*) FILTER (WHERE use IS NOT NULL AND transfer IS NOT NULL) AS n,
           correlation(next_use, transfer) AS r_next,
           count(*) FILTER (WHERE next_use IS NOT NULL AND transfer IS NOT NULL) AS n_next
    FROM per_run
    GROUP BY suite, keys
), apart AS ( -- distances from the means of the groups, which say nothing about what use does
    SELECT use - avg(use) FILTER (WHERE transfer IS NOT NULL) OVER pair AS use,
           transfer - avg(transfer) FILTER (WHERE use IS NOT NULL) OVER pair AS transfer,
           next_use - avg(next_use) FILTER (WHERE transfer IS NOT NULL) OVER pair AS next_use,
           transfer - avg(transfer) FILTER (WHERE next_use IS NOT NULL) OVER pair AS transfer_next
    FROM per_run
    WINDOW pair AS (PARTITION BY suite, keys)
), within AS (
    SELECT correlation(use, transfer) AS r, count(*) FILTER (WHERE use IS NOT NULL AND transfer IS NOT NULL) AS n,
           (SELECT count(*) - 1 FROM groups WHERE n > 0) AS held, correlation(next_use, transfer_next) AS r_next,
           count(*) FILTER (WHERE next_use IS NOT NULL AND transfer_next IS NOT NULL) AS n_next,
           (SELECT count(*) - 1 FROM groups WHERE n_next > 0) AS held_next
    FROM apart
), lines AS (
    SELECT 0 AS part, suite, keys, run, runs, merges, followed, use, unused, overwritten, next_use, loss_before, loss_after,
           distance, transfer, r, n, 0 AS held, r_next, n_next, 0 AS held_next
    FROM groups
    UNION ALL
    SELECT 1, 'within groups', NULL, NULL, (SELECT count(*) FROM per_run), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           NULL, NULL, r, n, held, r_next, n_next, held_next
    FROM within
    WHERE (SELECT count(*) FROM groups) > 1
)
SELECT part, keys, suite, asked.key AS title, settings.value AS value, runs, merges, followed, use, unused, overwritten,
       next_use, loss_before, loss_after, distance, transfer, iif(n > held + 2, r, NULL) AS r,
       fisher_low(iif(n > held + 2, r, NULL), n, held) AS r_low, fisher_high(iif(n > held + 2, r, NULL), n, held) AS r_high,
       iif(n_next > held_next + 2, r_next, NULL) AS r_next,
       fisher_low(iif(n_next > held_next + 2, r_next, NULL), n_next, held_next) AS r_next_low,
       fisher_high(iif(n_next > held_next + 2, r_next, NULL), n_next, held_next) AS r_next_high
FROM lines
CROSS JOIN asked
LEFT JOIN settings ON settings.run = lines.run AND settings.key = asked.key
ORDER BY part, suite, keys, asked.place
-- note:
-- include: no-merges
