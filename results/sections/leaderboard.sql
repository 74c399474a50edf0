-- section: 10 Leaderboard Leaderboard
-- draw: table 1
-- caption: Percent, means over finished seeds; bold: the best of a column. ±: half the width of the 95% interval of the mean to its
-- caption: left (Student), – where one seed has none. Gain: Last less zero-shot CLIP's accuracy.{tasks}{cut}
-- wide: key value
-- each main: -- column: "{title}" 1 {best}
-- each board: -- column: "{title}" 1 {best}
SELECT label AS configuration, asked.key AS key, differing.value AS value, configurations.finished AS seeds
-- each main: , mean({name}) AS "{title}", plus_minus(mean({name}), half_width({name}), {low}, {high}) AS "{title} ±"
-- each board: , mean({name}) AS "{title}"
       , (SELECT ' Means over all tasks, not ' || dataset || ' alone.' FROM page) AS tasks
       , (SELECT iif(count(*) > 200, ' The best 200 of ' || count(*) || ' by Last.', '') FROM configurations) AS cut
FROM configurations
LEFT JOIN members ON members.number = configurations.number AND members.finished
LEFT JOIN asked ON true
LEFT JOIN differing ON differing.number = configurations.number AND differing.key = asked.key
WHERE configurations.number <= 200
GROUP BY configurations.number, asked.place
ORDER BY configurations.number, asked.place
-- refuse:
SELECT 'No run is finished yet.' WHERE NOT EXISTS (SELECT 1 FROM members WHERE finished AND last IS NOT NULL)
