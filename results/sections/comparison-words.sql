-- section: 22
-- draw: list
-- details: {details}
WITH
-- include: compared
SELECT words, iif(count(*) OVER () > 9, 'In words', NULL) AS details
FROM compared_pairs
JOIN words USING (place)
ORDER BY place
LIMIT 600
