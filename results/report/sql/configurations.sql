-- The chosen runs, by configuration (runs that differ in the seed alone) and board (configurations that learn the same tasks in the
-- same order), once for a page. turn counts from 0, finished runs first; used: it enters means.
DROP TABLE IF EXISTS temp.page_members;
DROP TABLE IF EXISTS temp.page_configurations;
DROP TABLE IF EXISTS temp.page_settings;

CREATE TEMP TABLE page_members AS
SELECT chosen.run AS run, suite_hash AS hash, seed, status, status = 'finished' AS finished, status = 'finished' AS used,
       row_number() OVER (PARTITION BY suite_hash ORDER BY status <> 'finished', seed, chosen.run) - 1 AS turn,
       transfer, average, last, forgetting, backward_transfer, forward_transfer, gain, zero_shot
FROM chosen
LEFT JOIN metrics USING (run);

UPDATE page_members SET used = 1 WHERE hash NOT IN (SELECT hash FROM page_members WHERE finished);

-- Best Last first, those without a finished run last. A run that ended before its tasks were recorded is on no board. named: by its
-- row of a suite; base: the label before settings tell configurations apart.
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
SELECT board, row_number() OVER (PARTITION BY board ORDER BY rank DESC, hash) AS number, counted.run AS run, hash, '' AS label,
       '' AS legend, NULL AS colour, counted.runs AS runs, counted.finished AS finished, used,
       used || iif(used = 1, ' seed', ' seeds') || iif(counted.finished, '', ', unfinished') AS seeds, 0 AS named, '' AS base,
       suite, setting, method, policy, selector, selection, task_order, model, "precision"
FROM counted
JOIN learnt USING (run)
JOIN boards USING (names)
JOIN runs ON runs.run = counted.run;

CREATE UNIQUE INDEX temp.page_hash ON page_configurations (hash);

CREATE TEMP TABLE page_settings (hash, key, value, incidental, PRIMARY KEY (hash, key)) WITHOUT ROWID;
