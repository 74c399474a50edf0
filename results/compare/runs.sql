-- What of `chosen` may be compared, before any accuracy is read. `request` has one row; `asked` what is compared.
INSERT INTO note (note)
SELECT count(*) || iif(count(*) = 1, ' run that did not finish is left out', ' runs that did not finish are left out')
FROM chosen
WHERE status <> (SELECT status FROM request)
HAVING count(*) > 0;

DELETE FROM chosen WHERE status <> (SELECT status FROM request);

CREATE TEMP TABLE compared AS
SELECT run, seed, tasks, selection <> 'none' AS routed, (setting = 'class_incremental') + 2 * (setting = 'domain_incremental') AS accumulates,
       method = 'zero_shot' AND setting NOT IN ('open_domain', 'class_incremental', 'domain_incremental') AS untrained, CAST(dense_rank() OVER (ORDER BY suite_hash) AS INTEGER) AS configuration,
       false AS complete
FROM chosen
ORDER BY suite_hash, seed;

CREATE UNIQUE INDEX temp.compared_run ON compared (run);
CREATE UNIQUE INDEX temp.compared_seed ON compared (configuration, seed);

-- Runs that differ in the seed alone; run: the first of them. base: the compared values. agreed: what a context has in common.
CREATE TEMP TABLE configuration (configuration INTEGER PRIMARY KEY, run INTEGER, base TEXT, tests TEXT, agreed TEXT,
                                 context INTEGER, name TEXT, grp INTEGER);

INSERT INTO configuration (configuration, run)
SELECT configuration, run FROM (SELECT configuration, run, min(seed) FROM compared GROUP BY configuration);

-- Settings that are not the same everywhere, and those that are compared; a value of null is not set. content: of an input;
-- idle: the value makes no difference; by: the key is compared; own: it belongs to what is compared.
CREATE TEMP TABLE told (configuration INTEGER, key TEXT, value TEXT, content INTEGER, idle INTEGER, by INTEGER, own INTEGER,
                        setting TEXT AS (key || coalesce(' = ' || value, ' not set')),
                        section TEXT AS (substr(key, 1, instr(key || '.', '.') - 1)),
                        PRIMARY KEY (configuration, key)) WITHOUT ROWID;

CREATE TEMP VIEW apart AS
SELECT a.configuration AS here, b.configuration AS there, a.key AS key, a.value AS a, b.value AS b, a.by AS by,
       a.own AND (a.value IS NULL OR b.value IS NULL) AS own
FROM told AS a
JOIN told AS b ON b.key = a.key AND b.value IS NOT a.value AND NOT (a.idle AND b.idle);

-- In the order of the first runs that have them.
CREATE TEMP TABLE dataset AS
SELECT row_number() OVER (ORDER BY run, task) AS place, name
FROM (SELECT name, min(tasks.run) AS run, task
      FROM (SELECT min(run) AS run FROM compared GROUP BY configuration)
      JOIN tasks USING (run)
      GROUP BY name);

-- What tests are functions of: a value per context, seed and group, of each metric and dataset; dataset 0: the mean.
CREATE TEMP TABLE measured (configuration INTEGER, metric INTEGER, dataset INTEGER, seed INTEGER, value REAL,
                            PRIMARY KEY (configuration, metric, dataset, seed)) WITHOUT ROWID;

CREATE TEMP VIEW observed AS
SELECT context, seed, grp, metric, dataset, value FROM configuration JOIN measured USING (configuration);

CREATE TEMP TABLE words (place INTEGER PRIMARY KEY, words TEXT);

-- Of single images: what images.c finds, by seed and by task, and what follows.
CREATE TEMP TABLE looked (two, dataset, seed, images, only_a, only_b, router_a, router_b, class_a, class_b);
CREATE TEMP TABLE bounds (two, dataset, difference, low, high);
CREATE TEMP TABLE imaged (baseline, other, dataset, seeds, images, difference, low, high, router_a, router_b, class_a,
                          class_b);
CREATE TEMP TABLE discordance (baseline, other, dataset, seed, images, only_a, only_b, p, p_holm);
