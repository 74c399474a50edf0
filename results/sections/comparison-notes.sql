-- section: 26
-- draw: notes
WITH
-- include: compared
SELECT note || '.' AS note
FROM note
JOIN page ON board = 1
WHERE (SELECT count(*) FROM compared_groups) > 1
ORDER BY place
