-- The head of a page: its facts, and what is left out.
WITH counts AS (
    SELECT count(*) AS runs, CAST(total(finished) AS INTEGER) AS finished, count(DISTINCT hash) AS configurations,
           (SELECT max(board) FROM page_configurations) AS boards
    FROM page_members
)
SELECT runs || iif(runs = 1, ' run, ', ' runs, ') || finished || ' finished; ' || configurations || ' configuration'
       || iif(configurations = 1, '', 's') || '. Written ' || strftime('%Y-%m-%d %H:%M', 'now') || ' UTC.'
FROM counts
UNION ALL
SELECT 'There is no run to report on.' FROM counts WHERE boards IS NULL
UNION ALL
SELECT 'Left out: ' || (boards - 4) || ' more sequences of tasks, each with fewer configurations. A suite or setting given to mtil '
       || 'report shows them.'
FROM counts
WHERE boards > 4
