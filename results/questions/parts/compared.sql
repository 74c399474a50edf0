-- What mtil compare finds (results/compare/): groups of the board, their contexts by number where there are several, and their pairs.
-- A section with this part is left out where nothing is compared.
compared_groups AS MATERIALIZED (
    SELECT grp, context, name, compared AS "by", iif(several, dense_rank() OVER (ORDER BY context), NULL) AS number
    FROM (SELECT *, max(context) OVER () > min(context) OVER () AS several
          FROM configuration AS one
          WHERE EXISTS (SELECT 1 FROM configuration AS earlier JOIN members USING (run)
                        WHERE earlier.context = one.context AND earlier.grp <= one.grp))
    CROSS JOIN page
), compared_pairs AS MATERIALIZED (
    SELECT pair.*, b.number AS number, b."by" AS "by", a.name AS baseline_name, b.name AS other_name, metric.name AS metric_name,
           title, dataset.name AS dataset_name, iif(b.number IS NULL, '', '[' || b.number || '] ') AS of_context, count(*) OVER () > 600 AS cut
    FROM pair
    JOIN compared_groups AS a ON a.grp = baseline
    JOIN compared_groups AS b ON b.grp = other
    JOIN metric ON metric.place = metric
    LEFT JOIN dataset ON dataset.place = dataset
)
