-- section: 24
-- draw: table wrapped
-- name: comparison
-- caption: Differences in points, over common seeds: mean, standard deviation, 95% interval (Student), median (Hodges–Lehmann),
-- caption: effect size (Hedges' g of paired differences), p of the exact permutation test, after Holm's correction, of Wilcoxon's
-- caption: exact test, of Student's.{cut}
-- wide: by other
-- column: place hidden
-- column: context, dataset optional
-- column: difference, sd, low, high, median, effect 2
WITH
-- include: compared
SELECT place, number AS context, baseline_name AS baseline, "by", other_name AS other, metric_name AS metric, dataset_name AS dataset,
       n AS seeds, difference, sd, low, high, median, effect, p, p_holm, p_wilcoxon, p_t, iif(cut, ' Cut to 600 rows; mtil compare has all.', '') AS cut
FROM compared_pairs
ORDER BY place
LIMIT 600
