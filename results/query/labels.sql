-- What tables and figures call the configurations of `chosen`: their name (view names) and, of those that have one name and learn
-- the same tasks, what tells them apart: the words in which some differ that are alike in all words before. First come columns of
-- runs, then settings (run_values of the runs of `alike`, labels-told.sql), at last a digest.
DROP VIEW IF EXISTS temp.alike;
DROP TABLE IF EXISTS temp.labels;
CREATE TEMP TABLE labels (hash TEXT PRIMARY KEY, run INTEGER, learns TEXT, label TEXT);
INSERT INTO labels
SELECT suite_hash, run, (SELECT group_concat(name, char(31))
                         FROM (SELECT name FROM tasks WHERE tasks.run = first.run ORDER BY name)), row
FROM (SELECT suite_hash, min(run) AS run FROM chosen GROUP BY suite_hash) AS first
JOIN names USING (run)
ORDER BY run;

CREATE TEMP VIEW alike AS
SELECT rowid AS place, * FROM (SELECT rowid, *, count(*) OVER (PARTITION BY learns, label) AS count FROM labels) WHERE count > 1;
