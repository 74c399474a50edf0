-- section: 110 Merged Use of merged experts
-- title: Whether merged experts are used
-- draw: interval own_ranges 2
-- caption: Use in the 50 iterations after each merge, fewer where the task ends, and, of merged experts that no later merge
-- caption: overwrites, in the whole next task, whose router is another. Means over the merges of a run, then over runs, with 95%
-- caption: intervals (Student); no interval where there is one run. The axes of the panels differ.
WITH
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
