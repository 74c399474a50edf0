-- section: 90 Patches Which patches go to which expert
-- title: Experts of patches of {choice} in block {block}
-- draw: cells
-- name: patches-{number}-{block}
-- choice: Task
-- caption: {of}: the expert that each patch chooses first in the last test. A panel per test image, by its place in the list and
-- caption: its file{cut}; experts in the order of their patches. Experts of two blocks have nothing to do with
-- caption: one another.
WITH shown_run AS MATERIALIZED (
    SELECT run, label || ', seed ' || seed AS of FROM drawn
    WHERE turn = 0 AND run IN (SELECT run FROM patch_experts)
    ORDER BY number
    LIMIT 1
), pictures AS MATERIALIZED (
    SELECT task, block, image, file, width, experts, dense_rank() OVER (PARTITION BY task, block ORDER BY image) AS place
    FROM shown_run
    JOIN patch_experts USING (run)
    JOIN board USING (task)
    WHERE wanted
), room AS ( -- images of a task that are drawn: an answer has at most ten million cells
    SELECT max(1, CAST(800000.0 * max(place) / sum(json_array_length(experts)) AS INTEGER)) AS most, max(place) AS all_of_them
    FROM pictures
), patches AS MATERIALIZED (
    SELECT task, block, image, file, patch.key % width AS "column", patch.key / width AS "row", patch.value AS expert
    FROM pictures
    JOIN room
    JOIN json_each(pictures.experts) AS patch
    WHERE place <= most
), ranks AS MATERIALIZED ( -- the experts with the most patches come first; the last of six colours is that of all others
    SELECT task, block, expert, row_number() OVER (PARTITION BY task, block ORDER BY count(*) DESC, expert) - 1 AS place,
           count(*) OVER (PARTITION BY task, block) AS experts
    FROM patches
    GROUP BY task, block, expert
)
SELECT board.name AS choice, task + 1 AS number, block, of,
       iif(most < all_of_them, ', the first ' || most || ' of a task', '') AS cut, image || '  ' || file AS panel,
       iif(place >= 5 AND experts > 6, 'the other ' || (experts - 5) || ' experts', 'expert ' || expert) AS series,
       min(place, 5) AS colour, "column", "row", expert AS value
FROM patches
JOIN ranks USING (task, block, expert)
JOIN board USING (task)
JOIN shown_run
JOIN room
ORDER BY task, block, image, "row", "column"
