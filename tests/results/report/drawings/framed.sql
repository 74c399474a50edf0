-- section: 206 Framed A frame around a value
-- title: framed
-- draw: heat printed 1
SELECT 'panel' AS panel, column1 AS row, column2 AS column, column3 AS value, column4 AS framed
FROM (VALUES ('first', 'a', 1, 1), ('first', 'a class whose name is longer than anybody would like', 9, 0),
             ('second', 'a', NULL, 0))
