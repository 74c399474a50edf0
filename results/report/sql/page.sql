-- The chosen runs of a page, by configuration (runs that differ in the seed alone) and board (configurations that learn the same
-- tasks in the same order). turn counts from 0, finished runs first; used: it enters means.
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
), learnt AS (
    SELECT run, group_concat(name, char(31)) AS names
    FROM (SELECT run, name FROM counted JOIN tasks USING (run) ORDER BY run, task)
    GROUP BY run
), boards AS (
    SELECT names, row_number() OVER (ORDER BY count(*) DESC, names) AS board
    FROM counted
    JOIN learnt USING (run)
    GROUP BY names
)
SELECT board, row_number() OVER (PARTITION BY board ORDER BY rank DESC, hash) AS number, run, hash, runs, finished, used,
       used || iif(used = 1, ' seed', ' seeds') || iif(finished, '', ', unfinished') AS seeds
FROM counted
JOIN learnt USING (run)
JOIN boards USING (names);

CREATE TEMP TABLE page (board, dataset, best, compared);
