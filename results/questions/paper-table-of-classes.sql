-- column: own,number hidden
-- column: * right 1
-- column: "Avg ±","Last ±" right 1
-- wide: title value

-- The table of class- and domain-incremental papers: Avg and Last over all images of the tasks so far, means over seeds of finished
-- runs. A single training on all tasks has no Avg.
WITH own AS MATERIALIZED (
    SELECT c.run AS run, min(c.run) OVER (PARTITION BY suite_hash) AS number,
           c.tasks AS tasks, iif(setting = 'domain_incremental', task_order, trim(s.value, '[]')) AS dataset,
           c.model = 'mini' AS mini, average, m.accuracy AS last,
           iif(:published AND c.model NOT IN ('mini', '') AND c.model NOT LIKE '%b_16%' AND c.model NOT LIKE '%b16%',
               ', ' || c.model, '') AS model, -- papers have ViT-B/16
           setting = 'domain_incremental' OR EXISTS ( -- in an order of classes with which a paper has numbers
               SELECT 1
               FROM settings AS o
               JOIN published_steps AS p ON p.dataset = trim(s.value, '[]')
               WHERE o.run = c.run AND o.key = 'data.class_order'
                     AND trim(o.value, '[]') = coalesce(p.class_order, replace(p.dataset, '_', ''))) AS in_order,
           label
    FROM chosen AS c
    JOIN mean_accuracy AS m ON m.run = c.run AND m.after_task = c.tasks - 1
    LEFT JOIN metrics ON metrics.run = c.run
    LEFT JOIN settings AS s ON s.run = c.run AND s.key = 'data.order'
    JOIN labels ON labels.hash = suite_hash
    WHERE status = 'finished' AND setting IN ('class_incremental', 'domain_incremental')
), sizes AS (
    SELECT run, sum(test_images) AS images FROM own JOIN tasks USING (run) GROUP BY run
), marked AS (
    SELECT own.*, :published AND (mini OR (
               SELECT sum(sizes.images BETWEEN 0.9 * p.images AND p.images) = 0 -- NULL: the number is not known
               FROM published_images AS p
               WHERE p.dataset = own.dataset)) AS other
    FROM own
    JOIN sizes USING (run)
), lines AS (
    SELECT 1 AS own, number, dataset, tasks,
           max(label) || max(model)
           || CASE WHEN max(other) THEN ' (other data than in papers)'
                   WHEN :published AND NOT max(in_order) THEN ' (other setting than in papers)' ELSE '' END AS method,
           count(*) AS seeds, avg(average) AS average, avg(last) AS last,
           plus_minus(avg(average), half_width(average), 0, 100) AS average_half,
           plus_minus(avg(last), half_width(last), 0, 100) AS last_half
    FROM marked
    GROUP BY number
    UNION ALL
    SELECT 0, row, dataset, tasks, method || ', published (' || source || ')', NULL, average, last, NULL, NULL
    FROM published_steps
    WHERE :published AND (NOT EXISTS (SELECT 1 FROM own) OR (dataset, tasks) IN (SELECT dataset, tasks FROM own))
), columns (place, title) AS (VALUES (0, 'Avg'), (1, 'Avg ±'), (2, 'Last'), (3, 'Last ±'))
SELECT own, number, dataset, tasks, method, seeds, title,
       CASE place WHEN 0 THEN average WHEN 1 THEN average_half WHEN 2 THEN last ELSE last_half END AS value
FROM lines
CROSS JOIN columns
ORDER BY dataset, tasks, own, number, place
