-- The settings of the runs of `valued` (place, run), and the contents of their inputs as settings among them: run_values. A
-- content is called by its path in the suite, with the beginning of its digest if another content has that path already.
DROP TABLE IF EXISTS temp.run_values;
CREATE TEMP TABLE run_values (place INTEGER, key TEXT, value TEXT, content INTEGER, PRIMARY KEY (place, key)) WITHOUT ROWID;
INSERT INTO run_values
SELECT place, key, iif(typeof(value) = 'real', shortest(value), value), 0
FROM valued
CROSS JOIN settings USING (run);

INSERT OR REPLACE INTO run_values
WITH kinds (key, kind, path, file) AS ( -- path: the key that names it; file: without a digest its path is all that is known
    VALUES ('model.weights', 'weights', 'model.weights', 1), ('model.configuration', 'configuration', 'model.weights', 0),
           ('model.vocabulary', 'vocabulary', 'model.vocabulary', 1), ('data.root', 'train', 'data.root', 0),
           ('prompts', 'prompts', 'data.root', 0), ('test images', 'test', 'data.root', 0)
), digests AS ( -- by name, whatever the order in which the tasks are trained
    SELECT place, kind, iif(count(*) = 1, max(digest), digest(name || ' ' || digest)) AS digest
    FROM (SELECT place, kind, digest, coalesce(name, '') AS name
          FROM valued CROSS JOIN inputs USING (run) LEFT JOIN tasks USING (run, task) ORDER BY place, kind, 4, task)
    GROUP BY place, kind
), named AS (
    SELECT valued.place AS place, kinds.key AS key, digest,
           CASE WHEN digest IS NOT NULL OR file THEN coalesce(value, 'not set')
                WHEN kinds.kind = 'configuration' AND value = 'scratch' THEN 'none' ELSE 'not recorded' END AS name
    FROM valued
    CROSS JOIN kinds
    LEFT JOIN run_values ON run_values.place = valued.place AND run_values.key = kinds.path
    LEFT JOIN digests ON digests.place = valued.place AND digests.kind = kinds.kind
), firsts AS ( -- the run that has a content first gives it its name
    SELECT key, digest, name, min(place) AS place
    FROM named
    GROUP BY key, digest, iif(digest IS NULL, name, '')
), labels AS (
    SELECT key, digest, name, row_number() OVER (PARTITION BY key, name ORDER BY place) AS number FROM firsts
)
SELECT named.place, key,
       labels.name || iif(number = 1, '', ' (' || coalesce(substr(labels.digest, 1, 12), 'not recorded') || ')'), 1
FROM named
JOIN labels USING (key)
WHERE labels.digest IS named.digest AND (named.digest IS NOT NULL OR labels.name = named.name);
