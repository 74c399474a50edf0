-- section: 10 Leaderboard Leaderboard
-- draw: table 1
-- caption: Percent, means over finished seeds; bold: the best of a column. ±: half the width of the 95% interval of the mean to its
-- caption: left (Student), – where one seed has none. Gain: Last less zero-shot CLIP's accuracy.{cut}
-- wide: key value
-- column: Transfer, Average, Last, Gain 1 highest
-- column: Forgetting 1 lowest
SELECT label AS configuration, asked.key AS key, differing.value AS value, configurations.finished AS seeds,
       mean(transfer) AS Transfer, plus_minus(mean(transfer), half_width(transfer), 0, 100) AS "Transfer ±", mean(average) AS Average,
       plus_minus(mean(average), half_width(average), 0, 100) AS "Average ±", mean(last) AS Last,
       plus_minus(mean(last), half_width(last), 0, 100) AS "Last ±",
       mean(forgetting) AS Forgetting, mean(gain) AS Gain,
       (SELECT iif(count(*) > 200, ' The best 200 of ' || count(*) || ' by Last.', '') FROM configurations) AS cut
FROM configurations
LEFT JOIN members ON members.number = configurations.number AND members.finished
LEFT JOIN asked ON true
LEFT JOIN differing ON differing.number = configurations.number AND differing.key = asked.key
WHERE configurations.number <= 200
GROUP BY configurations.number, asked.place
ORDER BY configurations.number, asked.place
-- refuse:
SELECT 'No run is finished yet.' WHERE NOT EXISTS (SELECT 1 FROM members WHERE finished AND last IS NOT NULL)
