SELECT count(*) || iif(count(*) = 1, ' configuration without a finished run is not drawn.',
                       ' configurations without a finished run are not drawn.')
FROM configurations
WHERE finished = 0
HAVING count(*) > 0 AND (SELECT max(finished) FROM configurations) > 0
UNION ALL
SELECT iif(count(colour) = 1, 'Drawn is the configuration', 'Drawn are the ' || count(colour) || ' configurations')
       || ' with the highest Last of ' || count(*) || '.'
FROM configurations
WHERE finished > 0 OR (SELECT max(finished) FROM configurations) = 0
HAVING count(colour) < count(*)
