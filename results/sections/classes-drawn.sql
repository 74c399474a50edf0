-- section: 81
-- title: {title}
-- draw: heat
-- name: {name}
-- choice: Task
-- caption: {said}. A panel per block, a column per expert; empty: never chosen. A column that is dark in few rows is an
-- caption: expert for these; rows that look alike are served alike. A row per {unit}{more}
-- x: expert
-- y: {unit}
-- value: {what}
-- range: 0
WITH
-- include: served
, drawings(drawing, thing, does, what) AS (
    VALUES ('served', 'Experts', 'the experts that test images choose, %', 'share, %'),
           ('gates', 'Mean gates', 'the mean gate of each expert over all choices of test images, 0 in those of others',
            'mean gate')
), room AS ( -- classes of a task that are drawn: an answer has at most ten million cells
    SELECT max(1, min(128, 400000 / count(DISTINCT task) / count(DISTINCT block) / (SELECT count(*) FROM experts))) AS most
    FROM usage
), sheets AS MATERIALIZED ( -- all tasks, and the classes of each
    SELECT -1 AS place, 'tasks' AS part, 'all tasks' AS choice, 'task''s images' AS of_what, 'task' AS unit, '.' AS more,
           1 AS low, count(*) AS high
    FROM board
    HAVING count(*) > 1
    UNION ALL
    SELECT task, task + 1, board.name, 'class of ' || board.name, 'class',
           ', by its number: mtil query class-experts has the names.'
           || iif(classes > most, ' The first ' || most || ' of ' || classes || ' classes.', ''), 0, min(classes, most) - 1
    FROM board
    JOIN tasks USING (task)
    JOIN room
    WHERE wanted AND tasks.run IN (SELECT run FROM served) AND task IN (SELECT task FROM usage)
), numbers(number) AS (
    SELECT 0
    UNION ALL
    SELECT number + 1 FROM numbers WHERE number < (SELECT max(high) FROM sheets)
), cells AS MATERIALIZED (
    SELECT -1 AS place, block, task + 1 AS line, expert, 100.0 * sum(count) / sum(sum(count)) OVER of_task AS share,
           sum(gate * images) / sum(sum(count)) OVER of_task AS gate
    FROM usage
    GROUP BY block, task, expert
    WINDOW of_task AS (PARTITION BY block, task)
    UNION ALL
    SELECT task, block, class, expert, share, gate FROM usage
), filled AS (
    SELECT place, drawing, block, line, expert, iif(drawing = 'gates', gate, share) AS value
    FROM cells
    JOIN drawings
    WHERE drawing = 'served' OR gate IS NOT NULL
), places AS MATERIALIZED ( -- the first panel has every row and column, in their order; the others what is filled
    SELECT DISTINCT place, drawing, (SELECT min(block) FROM usage) AS block, numbers.number AS line, experts.expert AS expert
    FROM filled
    JOIN sheets USING (place)
    JOIN numbers ON numbers.number BETWEEN low AND high
    JOIN experts
    UNION
    SELECT place, drawing, block, line, expert FROM filled JOIN sheets USING (place) WHERE line BETWEEN low AND high
)
SELECT choice, drawing || '-' || part AS name, iif(first, thing || ' of each ' || of_what, NULL) AS title,
       iif(first, of || ': ' || does, NULL) AS said, iif(first, more, NULL) AS more, unit, what, 'image ' || block AS panel,
       line AS row, expert AS column, value
FROM (SELECT *, row_number() OVER (PARTITION BY place, drawing ORDER BY block, line, expert) = 1 AS first FROM places)
LEFT JOIN filled USING (place, drawing, block, line, expert)
JOIN sheets USING (place)
JOIN drawings USING (drawing)
JOIN served
ORDER BY place, drawing DESC, block, line, expert
