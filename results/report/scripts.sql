-- Tables that the sections of a page read, and its head.
-- === page
-- The chosen runs of a page, by configuration (runs that differ in the seed alone) and board (of `labels`). turn counts from 0, finished runs first; used: it enters means.
CREATE TEMP TABLE page_members AS
SELECT chosen.run AS run, suite_hash AS hash, seed, status, status = 'finished' AS finished,
       status = 'finished' OR NOT max(status = 'finished') OVER (PARTITION BY suite_hash) AS used,
       row_number() OVER (PARTITION BY suite_hash ORDER BY status <> 'finished', seed, chosen.run) - 1 AS turn
-- each: , {name}
FROM chosen
LEFT JOIN metrics USING (run);

CREATE INDEX temp.page_members_hash ON page_members (hash);

-- Best Last first, those without a finished run last. A run that ended before its tasks were recorded is on no board.
CREATE TEMP TABLE page_configurations AS
WITH counted AS (
    SELECT hash, max(run) FILTER (WHERE turn = 0) AS run, count(*) AS runs, sum(finished) AS finished, sum(used) AS used,
           iif(max(finished), coalesce(mean(last) FILTER (WHERE finished), -1), -2) AS rank
    FROM page_members
    GROUP BY hash
)
SELECT board, row_number() OVER (PARTITION BY board ORDER BY rank DESC, hash) AS number, counted.run AS run, hash, runs, finished, used,
       used || iif(used = 1, ' seed', ' seeds') || iif(finished, '', ', unfinished') AS seeds
FROM counted
JOIN labels USING (hash)
WHERE board IS NOT NULL;

CREATE TEMP TABLE page (board, dataset, best, compared);
-- === board
-- What the questions of a page read, of the board whose number is in the table `page` (results/report/data.h). Colours
-- follow in `colours`.
CREATE TEMP TABLE configurations AS
SELECT number, page_configurations.run AS run, hash, label, NULL AS colour, runs, finished, used, seeds
FROM page_configurations
JOIN labels USING (hash)
WHERE page_configurations.board = (SELECT board FROM page)
ORDER BY number;

CREATE TEMP TABLE members AS
SELECT page_members.run AS run, number, turn, seed, status, page_members.finished AS finished, page_members.used AS used
-- each: , {name}
FROM configurations
JOIN page_members USING (hash)
ORDER BY number, turn;

CREATE TEMP TABLE board AS
SELECT row_number() OVER (ORDER BY task) - 1 AS task, name, row_number() OVER (ORDER BY task) || '  ' || name AS title,
       dataset IS NULL OR dataset = name AS wanted
FROM tasks
CROSS JOIN page
WHERE run = (SELECT run FROM configurations WHERE number = 1)
ORDER BY task;

CREATE TEMP TABLE differing (number, key, value, incidental, PRIMARY KEY (number, key)) WITHOUT ROWID;

CREATE UNIQUE INDEX temp.configurations_number ON configurations (number);
CREATE UNIQUE INDEX temp.members_run ON members (run);
CREATE UNIQUE INDEX temp.board_task ON board (task);
-- === colours
-- Drawn are the best with a finished run, or the best of all where none has one. The letters of a merge policy, or of the method of
-- runs without one, give the usual colour, the same on every page whatever the rank; the policies of the first suites have six
-- different ones. Where several have one usual colour, all but one get those that are left.
UPDATE configurations SET colour = given.colour
FROM (
    WITH colours(colour) AS (
        VALUES (0), (1), (2), (3), (4), (5)
    ), best AS (
        SELECT number, label, iif(policy = 'none', method, policy) AS name
        FROM configurations
        JOIN runs USING (run)
        WHERE configurations.finished > 0 OR (SELECT max(finished) FROM configurations) = 0
        ORDER BY number
        LIMIT (SELECT best FROM page)
    ), usual AS (
        SELECT number, label, name, coalesce((2 * unicode(substr(name, 2)) + length(name)) % 6, 0) AS colour FROM best
    ), ranked AS (
        SELECT *, row_number() OVER (PARTITION BY colour ORDER BY name, label) AS rank FROM usual
    ), further AS (
        SELECT number, row_number() OVER (ORDER BY name, label) AS place FROM ranked WHERE rank > 1
    ), free AS (
        SELECT colour, row_number() OVER (ORDER BY colour) AS place FROM colours WHERE colour NOT IN (SELECT colour FROM usual)
    )
    SELECT number, colour FROM ranked WHERE rank = 1
    UNION ALL
    SELECT number, colour FROM further JOIN free USING (place)
) AS given
WHERE given.number = configurations.number;

CREATE TEMP TABLE drawn AS
SELECT members.run AS run, number, turn, seed, label, colour, seeds
FROM members
JOIN configurations USING (number)
WHERE members.used AND colour IS NOT NULL
ORDER BY number, turn;

CREATE UNIQUE INDEX temp.drawn_run ON drawn (run);
-- === notes
-- The head of a page: its facts, and what is left out.
WITH counts AS (
    SELECT count(*) AS runs, CAST(total(finished) AS INTEGER) AS finished, count(DISTINCT hash) AS configurations,
           (SELECT max(board) FROM page_configurations) AS boards
    FROM page_members
), kinds (place, one, several, word) AS (
    SELECT 1, 'Suite ', 'Suites ', suite FROM runs JOIN page_members USING (run)
    UNION
    SELECT 2, 'model ', 'models ', model FROM runs JOIN page_members USING (run)
    UNION
    SELECT 3, '', '', "precision" || ' on ' || backend FROM runs JOIN page_members USING (run)
)
SELECT runs || iif(runs = 1, ' run, ', ' runs, ') || finished || ' finished; ' || configurations || ' configuration'
       || iif(configurations = 1, '', 's') || '. Written ' || strftime('%Y-%m-%d %H:%M', 'now') || ' UTC.'
FROM counts
UNION ALL
SELECT group_concat(iif(count = 1, one, several) || words, '; ')
FROM (
    SELECT one, several, count(*) AS count,
           group_concat(word, ', ') FILTER (WHERE rank <= 6) || iif(count(*) > 6, ', …', '') AS words
    FROM (SELECT *, row_number() OVER (PARTITION BY place ORDER BY word) AS rank FROM kinds)
    GROUP BY place
)
UNION ALL
SELECT 'There is no run to report on.' FROM counts WHERE boards IS NULL
UNION ALL
SELECT 'Left out: ' || (boards - 4) || ' more sequences of tasks, each with fewer configurations. A suite or setting given to mtil '
       || 'report shows them.'
FROM counts
WHERE boards > 4
