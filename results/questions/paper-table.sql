-- title: methods × datasets, a block for each of Transfer, Average, Last and Forgetting
-- column: metric once
-- column: block,own,number,supported hidden
-- column: * right 1
-- block: block
-- wide: title value
-- mark: supported
WITH
-- include: paper-table
SELECT blocks.block AS block, lines.own AS own, lines.number AS number, metric, method, seeds, iif(side <> '' AND (columns.kind = 1 OR :dataset IS NOT NULL), '±', columns.title || side) AS title,
       CASE WHEN side <> '' THEN half
            ELSE CASE blocks.block WHEN 0 THEN filled.transfer WHEN 1 THEN filled.average WHEN 2 THEN filled.last ELSE filled.forgetting END END AS value,
       side = '' AND lines.own AND (blocks.block, lines.number, coalesce(columns.name, '')) IN (
           SELECT block, number, coalesce(name, '') FROM supported) AS supported
FROM lines
CROSS JOIN blocks
CROSS JOIN columns
JOIN (SELECT '' AS side UNION ALL SELECT ' ±') ON side = '' OR (columns.kind = 1 OR :dataset IS NOT NULL) AND EXISTS (SELECT 1 FROM seeds)
LEFT JOIN filled ON filled.own = lines.own AND filled.number = lines.number AND filled.kind = columns.kind
                    AND filled.name IS columns.name
LEFT JOIN spread ON lines.own AND spread.block = blocks.block AND spread.number = lines.number AND spread.name IS columns.name
WHERE lines.own OR CASE blocks.block WHEN 0 THEN lines.transfer WHEN 1 THEN lines.average WHEN 2 THEN lines.last ELSE lines.forgetting END IS NOT NULL
ORDER BY blocks.block, lines.own, lines.number, place, side
-- instead:
SELECT CASE WHEN count(*) > 0 AND count(*) = sum(run IN (SELECT run FROM settings WHERE key = 'head.name' AND value = 'linear'))
            THEN 'paper-table-of-classifiers'
            WHEN :setting = 'class_incremental' OR count(*) > 0 AND sum(setting <> 'class_incremental') = 0
            THEN 'paper-table-of-classes' END
FROM chosen
WHERE status = 'finished'
-- refuse:
SELECT '--baseline is for the table of classifiers; with runs of other kinds in the database, choose them with --method supervised'
WHERE :baseline IS NOT NULL
