-- section: 23
-- draw: table wrapped
-- name: contexts
-- details: {details}
-- caption: Runs stand beside one another where they agree in these settings.
WITH
-- include: compared
SELECT DISTINCT number AS context, context.name AS settings, iif(max(number) OVER () > 9, max(number) OVER () || ' contexts', NULL) AS details
FROM compared_groups
JOIN context USING (context)
WHERE number IS NOT NULL AND EXISTS (SELECT 1 FROM compared_pairs)
ORDER BY number
