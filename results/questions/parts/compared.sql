-- What mtil compare finds (results/compare/): groups of the board, their contexts by number where there are several, and the questions about
-- them, each on the board of its first context.
-- A section with this part is left out where nothing is compared.
compared_groups AS MATERIALIZED (
    SELECT grp, context, name, compared AS "by", iif(several, dense_rank() OVER (ORDER BY context), NULL) AS number
    FROM (SELECT *, max(context) OVER () > min(context) OVER () AS several
          FROM configuration AS one
          WHERE EXISTS (SELECT 1 FROM configuration AS earlier JOIN members USING (run)
                        WHERE earlier.context = one.context AND earlier.grp <= one.grp))
    CROSS JOIN page
), compared_pairs AS MATERIALIZED (
    SELECT answer.*, compared AS "by", count(*) OVER () > 600 AS cut
    FROM answer
    CROSS JOIN page
    WHERE (SELECT min(context) FROM term WHERE term.question = answer.question) IN (SELECT context FROM compared_groups)
)
