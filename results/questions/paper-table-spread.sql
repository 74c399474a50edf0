-- title: paper-table with ± beside each number
-- column: metric once
-- column: block,own,number,supported hidden
-- column: * right 1
-- block: block
-- wide: title value
-- mark: supported
WITH
-- include: paper-table
SELECT block, own, number, metric, method, seeds, title, value, supported
FROM entries
ORDER BY block, own, number, place, side
-- instead:
-- include: paper-table-instead
-- refuse:
SELECT '--baseline is for the table of classifiers; with runs of other kinds in the database, choose them with --method supervised'
WHERE :baseline IS NOT NULL
