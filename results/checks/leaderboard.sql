-- title: means and variances over seeds are those of the runs' own metrics
-- expect: no rows
WITH own AS MATERIALIZED (
    SELECT suite_hash, coalesce(name, '') AS name,
           json_array(avg(transfer), sd(transfer) * sd(transfer), avg(average), sd(average) * sd(average), avg(last),
                      sd(last) * sd(last), avg(forgetting), avg(backward_transfer), avg(gain)) AS computed
    FROM own_metrics JOIN runs USING (run) LEFT JOIN tasks USING (run, task)
    WHERE status = 'finished'
    GROUP BY 1, 2
), shown AS MATERIALIZED (
    SELECT suite_hash, '' AS name, json_array(transfer, transfer_variance, average, average_variance, last,
           last_variance, forgetting, backward_transfer, gain) AS viewed
    FROM leaderboard
    UNION ALL
    SELECT suite_hash, name, json_array(transfer, transfer_variance, average, average_variance, last, last_variance,
           forgetting, backward_transfer, gain)
    FROM task_leaderboard
), numbers AS (
    SELECT suite_hash, name, title.value AS title, json_extract(computed, '$[' || title.key || ']') AS expected,
           json_extract(viewed, '$[' || title.key || ']') AS found
    FROM own LEFT JOIN shown USING (suite_hash, name),
         json_each('["transfer", "transfer_variance", "average", "average_variance", "last", "last_variance", "forgetting",
                     "backward_transfer", "gain"]') AS title
)
SELECT 'leaderboard' AS what, 0 AS run,
       iif(name = '', 'leaderboard', 'task_leaderboard') || ', configuration ' || substr(suite_hash, 1, 12)
       || iif(name = '', '', ', ' || name) || ', ' || title AS "where",
       coalesce(expected, 'none') AS expected, coalesce(found, 'none') AS found
FROM numbers -- variances lose digits (mean of squares less square of the mean)
WHERE (expected IS NULL) <> (found IS NULL)
      OR abs(expected - found) > iif(title LIKE '%variance', 1e-6, 1e-9) * (1 + abs(expected))
UNION ALL
SELECT 'leaderboard', 0, suite_hash, 'none: no finished run is complete', 'a row'
FROM shown LEFT JOIN own USING (suite_hash, name)
WHERE computed IS NULL
