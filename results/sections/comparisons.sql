-- Sections 20 to 29: the comparison of groups of runs.
-- === comparison
-- section: 20 Comparison Comparison
-- title: Differences by {by}
-- draw: interval zero 2
-- caption: Mean differences over all contexts and common seeds, with 95% intervals (Student); right of the dotted line the first is
-- caption: better. No interval where there is one seed.{cut}
-- x: difference, points
-- include: compared
, ranked AS (
    SELECT *, row_number() OVER (PARTITION BY metric ORDER BY place) AS rank, count(*) OVER (PARTITION BY metric) AS count
    FROM compared_pairs
    WHERE difference IS NOT NULL AND dataset = 0
)
SELECT "by", title AS panel, other || ' − ' || baseline AS series, 0 AS colour, difference AS y, low, high,
       iif(count > 12, ' The first 12 of ' || count || ' pairs.', '') AS cut
FROM ranked
WHERE rank <= 12
ORDER BY metric, rank
-- === comparison-words
-- section: 22
-- draw: list
-- details: {details}
-- include: compared
SELECT words, iif(count(*) OVER () > 3, 'The same in ' || count(*) OVER () || ' sentences', NULL) AS details
FROM words
WHERE place IN (SELECT place FROM compared_pairs) OR place = 0 AND EXISTS (SELECT 1 FROM compared_pairs)
ORDER BY place
LIMIT 600
-- === comparison-contexts
-- section: 23
-- draw: table wrapped
-- name: contexts
-- details: {details}
-- caption: Runs stand beside one another where they agree in these settings.
-- include: compared
SELECT DISTINCT number AS context, context.name AS settings, iif(max(number) OVER () > 9, max(number) OVER () || ' contexts', NULL) AS details
FROM compared_groups
JOIN context USING (context)
WHERE number IS NOT NULL AND EXISTS (SELECT 1 FROM compared_pairs)
ORDER BY number
-- === comparison-pairs
-- section: 24
-- draw: table wrapped
-- name: comparison
-- caption: An answer per pair and metric, over all contexts and common seeds: mean difference in points, standard deviation,
-- caption: 95% interval (Student), p of the exact permutation test, after Holm's correction over all rows, correlation over seeds (r).{cut}
-- wide: by other
-- column: place hidden
-- column: contexts, dataset optional
-- column: difference, sd, low, high, r 2
-- include: compared
SELECT place, baseline, "by", other, metric_name AS metric, dataset_name AS dataset,
       iif(max(contexts) OVER () > 1, contexts, NULL) AS contexts, seeds, difference, sd, low, high, p, p_holm, r, verdict,
       iif(cut, ' Cut to 600 rows; mtil compare has all.', '') AS cut
FROM compared_pairs
ORDER BY place
LIMIT 600
-- === comparison-notes
-- section: 26
-- draw: list
-- include: compared
SELECT note || '.' AS note
FROM note
JOIN page ON board = 1
WHERE (SELECT count(*) FROM compared_groups) > 1
ORDER BY place
-- === comparison-details
-- section: 29
-- draw: table wrapped
-- name: details
-- details: Differences in each context
-- caption: Over the seeds that all groups of the context have; p is not corrected.{cut}
-- wide: by other
-- column: place hidden
-- column: dataset optional
-- column: difference, sd, low, high, median, effect 2
-- include: compared
SELECT detail.rowid AS place, number AS context, question.baseline AS baseline, compared AS "by", question.other AS other,
       metric.name AS metric, dataset.name AS dataset, runs, difference, sd, low, high, median, effect, p,
       iif(count(*) OVER () > 600, ' Cut to 600 rows; mtil compare has all.', '') AS cut
FROM detail
JOIN (SELECT DISTINCT context, number FROM compared_groups WHERE number IS NOT NULL) USING (context)
JOIN question USING (question)
JOIN metric ON metric.place = detail.metric
LEFT JOIN dataset ON dataset.place = detail.dataset
CROSS JOIN page
ORDER BY detail.rowid
LIMIT 600
