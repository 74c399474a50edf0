-- section: 29
-- draw: table wrapped
-- name: details
-- details: Differences in each context
-- caption: Over the seeds that all groups of the context have; p is not corrected.{cut}
-- wide: by other
-- column: place hidden
-- column: dataset optional
-- column: difference, sd, low, high, median, effect 2
WITH
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
