-- section: 203 Bars Values from zero
-- title: bars
-- draw: bars 1
-- x: GiB
SELECT 'memory' AS panel, column1 AS series, column2 AS y FROM (VALUES ('a', 5), ('b', -2.5), ('c', NULL))
