-- section: 60 Frozen Frozen experts
-- title: Frozen experts per block
-- draw: line points 1
-- caption: Means over the blocks of an encoder and over seeds; bands from the least to the greatest seed.
-- x: tasks trained
-- y: frozen experts
-- range: 0
WITH
-- include: frozen
SELECT encoder || ' encoder' AS panel, label AS series, colour, task + 1 AS x, avg(frozen) AS y, min(frozen) AS low,
       max(frozen) AS high
FROM (SELECT run, encoder, task, avg(frozen) AS frozen FROM counted GROUP BY run, encoder, task)
JOIN drawn USING (run)
GROUP BY encoder, number, task
ORDER BY encoder, number, task
