-- section: 81
-- title: {thing} of each {unit} of {choice}
-- draw: heat
-- name: {name}
-- choice: Task
-- caption: {of}: {what} of each expert among the choices of test images. A panel per block, a column per expert; empty: never
-- caption: chosen. A column that is dark in few rows is an expert for these; rows that look alike are served alike. A row per
-- caption: {unit}, by its number{more}.
-- x: expert
-- y: {unit}
-- value: {what}
-- range: 0
WITH
-- include: served
, drawings(drawing, thing, what) AS (
    VALUES ('served', 'Experts', 'share, %'), ('gates', 'Mean gates', 'mean gate')
), room AS ( -- classes of a task that are drawn: an answer has at most ten million cells
    SELECT max(1, min(128, 300000 * count(DISTINCT class) / count(*))) AS most FROM usage
), cells AS MATERIALIZED ( -- all tasks (place -1), and the classes of each
    SELECT -1 AS place, block, task + 1 AS line, expert, 100.0 * sum(count) / sum(sum(count)) OVER of_task AS share,
           sum(gate * images) / sum(sum(count)) OVER of_task AS gate
    FROM usage
    WHERE (SELECT count(*) FROM board) > 1
    GROUP BY block, task, expert
    WINDOW of_task AS (PARTITION BY block, task)
    UNION ALL
    SELECT task, block, class, expert, share, gate FROM usage JOIN board USING (task) JOIN room WHERE wanted AND class < most
), drawn_cells AS (
    SELECT place, drawing, block, line, expert, iif(drawing = 'gates', gate, share) AS value
    FROM cells
    JOIN drawings
    WHERE drawing = 'served' OR gate IS NOT NULL
), all_cells AS ( -- experts that nobody chose have their columns
    SELECT * FROM drawn_cells
    UNION ALL
    SELECT place, drawing, min(block), min(line), experts.expert, NULL FROM drawn_cells JOIN experts GROUP BY place, drawing, experts.expert
)
SELECT coalesce(board.name, 'all tasks') AS choice, drawing || '-' || iif(place < 0, 'tasks', place + 1) AS name, thing,
       iif(place < 0, 'task', 'class') AS unit, iif(place < 0, '', ': mtil query class-experts has the names') AS more, of, what,
       'image ' || block AS panel, line AS row, expert AS column, value
FROM all_cells
JOIN drawings USING (drawing)
JOIN served
LEFT JOIN board ON board.task = place
ORDER BY place, drawing DESC, block, line, expert
