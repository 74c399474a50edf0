-- What the merges of each drawn run did, as means; of runs in which iterations followed a merge.
merged AS MATERIALIZED (
    SELECT number, run, avg(use) AS use, 100.0 * avg(use = 0) AS unused,
           avg(next_use) FILTER (WHERE NOT overwritten) AS next_use, avg(distance) AS distance, max(members.transfer) AS transfer
    FROM drawn
    JOIN merge_use USING (run)
    JOIN members USING (run, number)
    GROUP BY run
    HAVING avg(use) IS NOT NULL
)
