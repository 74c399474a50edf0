-- The head of a page: its facts, the conditions that chose its runs, and what is left out.
WITH counts AS (
    SELECT count(*) AS runs, CAST(total(finished) AS INTEGER) AS finished, count(DISTINCT hash) AS configurations,
           (SELECT max(board) FROM page_configurations) AS boards
    FROM page_members
), conditions(name, value) AS (
    VALUES ('run', coalesce(:run, :runs)), ('seed', :seed), ('where', :where), ('suite', :suite), ('setting', :setting), ('method', :method),
           ('policy', :policy), ('selector', :selector), ('status', :status), ('dataset', :dataset), ('since', :since),
           ('before', :before)
)
SELECT runs || iif(runs = 1, ' run, ', ' runs, ') || finished || ' finished; ' || configurations || ' configuration'
       || iif(configurations = 1, '', 's') || '. Written ' || strftime('%Y-%m-%d %H:%M', 'now') || ' UTC.'
FROM counts
UNION ALL
SELECT 'Only ' || group_concat(name || ' ' || value, ', ') || '.' FROM conditions WHERE value IS NOT NULL HAVING count(*) > 0
UNION ALL
SELECT 'There is no run to report on.' FROM counts WHERE boards IS NULL
UNION ALL
SELECT 'Left out: ' || (boards - 4) || ' more sequences of tasks, each with fewer configurations. A suite or setting given to mtil '
       || 'report shows them.'
FROM counts
WHERE boards > 4
