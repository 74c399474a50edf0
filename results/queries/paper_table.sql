-- The table of MTIL papers: methods × datasets, a block for each of Transfer, Average and Last. Seeds are averaged, of
-- finished runs alone. A configuration is called by its method and policy, by what else differs between those of the
-- table and, where that is not enough, by its digest; its number is that of its first run. The mean is empty where a row
-- lacks a dataset that others have: it would be a mean over other tasks. Behind the CTE `chosen`; ?11: a dataset or
-- null, ?12: with published numbers. Columns: as results/query_wide.c wants them.
, varied AS (
    SELECT count(DISTINCT suite) > 1 AS suite, count(DISTINCT setting) > 1 AS setting,
           count(DISTINCT selector) > 1 AS selector, count(DISTINCT selection) > 1 AS selection,
           count(DISTINCT task_order) > 1 AS task_order, count(DISTINCT model) > 1 AS model
    FROM chosen
    WHERE status = 'finished'
), seeds AS (
    SELECT run, min(run) OVER (PARTITION BY suite_hash) AS number, substr(suite_hash, 1, 8) AS digest,
           c.method || iif(c.policy = 'none', '', ', ' || c.policy) || iif(v.suite, ', ' || c.suite, '')
           || iif(v.setting, ', ' || c.setting, '') || iif(v.selector, ', ' || c.selector, '')
           || iif(v.selection, ', ' || c.selection, '') || iif(v.task_order, ', order ' || c.task_order, '')
           || iif(v.model, ', ' || c.model, '') AS label
    FROM chosen AS c, varied AS v
    WHERE status = 'finished'
), cells AS MATERIALIZED (
    SELECT 1 AS own, number, max(label) AS label, max(digest) AS digest, count(*) AS seeds, name,
           min(run * 4096 + task) AS place, avg(transfer) AS transfer, avg(average) AS average, avg(last) AS last
    FROM task_metrics
    CROSS JOIN seeds USING (run)
    CROSS JOIN tasks USING (run, task)
    WHERE ?11 IS NULL OR name = ?11
    GROUP BY number, name
    UNION ALL
    SELECT 0, min(row), method || ', published (' || source || ')', '', NULL, dataset, 9e15 + task,
           max(accuracy) FILTER (WHERE metric = 'transfer'), max(accuracy) FILTER (WHERE metric = 'average'),
           max(accuracy) FILTER (WHERE metric = 'last')
    FROM published
    WHERE ?12 AND (?11 IS NULL OR dataset = ?11)
    GROUP BY source, method, setting, published.task_order, dataset
), datasets AS MATERIALIZED (
    SELECT name, min(place) AS place FROM cells GROUP BY name
), lines AS MATERIALIZED (
    SELECT own, number,
           max(label) || iif(count(*) OVER (PARTITION BY max(label)) > 1, ', ' || max(digest), '') AS method,
           max(seeds) AS seeds, count(*) = (SELECT count(*) FROM datasets) AS whole, avg(transfer) AS transfer,
           avg(average) AS average, avg(last) AS last
    FROM cells
    GROUP BY own, number
), columns AS ( -- the mean has no name, so that no dataset can be mistaken for it
    SELECT name, name AS title, place FROM datasets
    UNION ALL
    SELECT NULL, 'mean', 1e16 WHERE ?11 IS NULL AND EXISTS (SELECT 1 FROM datasets)
), filled AS (
    SELECT own, number, name, transfer, average, last FROM cells
    UNION ALL
    SELECT own, number, NULL, transfer, average, last FROM lines WHERE whole
), blocks (block, metric) AS (VALUES (0, 'Transfer'), (1, 'Average'), (2, 'Last'))
SELECT block, (SELECT count(*) FROM columns) AS width, metric, method, seeds, title,
       CASE block WHEN 0 THEN filled.transfer WHEN 1 THEN filled.average ELSE filled.last END AS value
FROM lines
CROSS JOIN blocks
CROSS JOIN columns
LEFT JOIN filled ON filled.own = lines.own AND filled.number = lines.number AND filled.name IS columns.name
ORDER BY block, lines.own, lines.number, place
