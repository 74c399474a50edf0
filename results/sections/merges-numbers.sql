-- section: 111
-- draw: table wrapped 2
-- name: merges
-- caption: r: correlation of a run's mean use with its Transfer over the runs of the configuration, r next: of the use in the
-- caption: next task, with Fisher's 95% intervals, which fewer than four runs do not have. Each merge: mtil query merges.
-- column: "merged experts never chosen, %","Transfer, %" 1
WITH
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
