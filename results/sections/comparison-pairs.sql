-- section: 24
-- draw: table wrapped
-- name: comparison
-- caption: An answer per pair and metric, over all contexts and common seeds: mean difference in points, standard deviation,
-- caption: 95% interval (Student), p of the exact permutation test, after Holm's correction over all rows, correlation over seeds (r).{cut}
-- wide: by other
-- column: place hidden
-- column: contexts, dataset optional
-- column: difference, sd, low, high, r 2
WITH
-- include: compared
SELECT place, baseline, "by", other, metric_name AS metric, dataset_name AS dataset,
       iif(max(contexts) OVER () > 1, contexts, NULL) AS contexts, seeds, difference, sd, low, high, p, p_holm, r, verdict,
       iif(cut, ' Cut to 600 rows; mtil compare has all.', '') AS cut
FROM compared_pairs
ORDER BY place
LIMIT 600
