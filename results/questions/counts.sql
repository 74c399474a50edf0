-- column: counts left

-- How many runs there are of each status, in one text.
SELECT coalesce(group_concat(count || ' ' || standing, ', '), 'no runs') AS counts
FROM (
    SELECT count(*) AS count, iif(status = 'running' AND is_gone(run, host), 'gone', status) AS standing
    FROM chosen
    GROUP BY standing
    ORDER BY standing = 'running' DESC, standing = 'gone' DESC, standing = 'finished' DESC, standing
)
