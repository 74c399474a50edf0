-- section: 180 Runs Runs
-- draw: table wrapped
-- details: {runs}
-- caption: Accuracies in percent, times in UTC.{cut}
-- each main: -- column: "{title}" 1
WITH counted AS (
    SELECT count(*) AS all_runs FROM members
)
SELECT members.run AS run, label AS configuration, members.seed AS seed
-- each main: , {name} AS "{title}"
       , members.status AS status, started, runs.finished AS ended, message,
       all_runs || iif(all_runs = 1, ' run', ' runs') AS runs,
       iif(all_runs > 500, ' The first 500 of ' || all_runs || '.', '') AS cut
FROM members
JOIN configurations USING (number)
JOIN runs ON runs.run = members.run
CROSS JOIN counted
ORDER BY number, turn
LIMIT 500
