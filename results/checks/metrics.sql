-- title: metrics are those of results/metrics.c, and means and variances over seeds those of the runs' own metrics
-- expect: no rows
WITH shown AS MATERIALIZED (
    SELECT run, task, transfer, average, last, forgetting, backward_transfer, forward_transfer, gain, zero_shot
    FROM task_metrics
    UNION ALL
    SELECT run, -1, transfer, average, last, forgetting, backward_transfer, forward_transfer, gain, zero_shot
    FROM metrics
), boards AS MATERIALIZED (
    SELECT suite_hash, '' AS name, json_array(transfer, transfer_variance, average, average_variance, last,
           last_variance, forgetting, backward_transfer, gain) AS viewed
    FROM leaderboard
    UNION ALL
    SELECT suite_hash, name, json_array(transfer, transfer_variance, average, average_variance, last, last_variance,
           forgetting, backward_transfer, gain)
    FROM task_leaderboard
), own_boards AS MATERIALIZED (
    SELECT suite_hash, coalesce(name, '') AS name,
           json_array(avg(transfer), sd(transfer) * sd(transfer), avg(average), sd(average) * sd(average), avg(last),
                      sd(last) * sd(last), avg(forgetting), avg(backward_transfer), avg(gain)) AS computed
    FROM own_metrics JOIN runs USING (run) LEFT JOIN tasks USING (run, task)
    WHERE status = 'finished'
    GROUP BY 1, 2
), pairs (what, run, place, titles, computed, viewed) AS (
    SELECT 'metrics', run, iif(task < 0, 'metrics, ', 'task_metrics, task ' || task || ', '),
           '["transfer", "average", "last", "forgetting", "backward_transfer", "forward_transfer", "gain", "zero_shot"]',
           json_array(own.transfer, own.average, own.last, own.forgetting, own.backward_transfer, own.forward_transfer,
                      own.gain, own.zero_shot),
           json_array(shown.transfer, shown.average, shown.last, shown.forgetting, shown.backward_transfer,
                      shown.forward_transfer, shown.gain, shown.zero_shot)
    FROM shown
    LEFT JOIN own_metrics AS own USING (run, task)
    WHERE (own.transfer, own.average, own.last, own.forgetting, own.backward_transfer, own.forward_transfer, own.gain,
           own.zero_shot)
          IS NOT (shown.transfer, shown.average, shown.last, shown.forgetting, shown.backward_transfer,
                  shown.forward_transfer, shown.gain, shown.zero_shot)
    UNION ALL
    SELECT 'leaderboard', 0, iif(name = '', 'leaderboard', 'task_leaderboard') || ', configuration '
           || substr(suite_hash, 1, 12) || iif(name = '', '', ', ' || name) || ', ',
           '["transfer", "transfer_variance", "average", "average_variance", "last", "last_variance", "forgetting",
             "backward_transfer", "gain"]', computed, viewed
    FROM own_boards LEFT JOIN boards USING (suite_hash, name)
), numbers AS (
    SELECT what, run, place || title.value AS "where", json_extract(computed, title.fullkey) AS expected,
           json_extract(viewed, title.fullkey) AS found
    FROM pairs, json_each(titles) AS title
)
SELECT what, run, "where", coalesce(expected, 'none') AS expected, coalesce(found, 'none') AS found
FROM numbers -- variances lose digits (mean of squares less square of the mean)
WHERE (expected IS NULL) <> (found IS NULL)
      OR abs(expected - found) > iif("where" LIKE '%variance', 1e-6, 1e-9) * (1 + abs(expected))
UNION ALL
SELECT 'metrics', run, iif(task < 0, 'metrics', 'task_metrics, task ' || task), 'a row', 'none'
FROM (SELECT run, task FROM own_metrics WHERE (SELECT count(*) FROM shown) < (SELECT count(*) FROM own_metrics)
      EXCEPT SELECT run, task FROM shown)
UNION ALL
SELECT 'leaderboard', 0, suite_hash, 'none: no finished run is complete', 'a row'
FROM boards LEFT JOIN own_boards USING (suite_hash, name)
WHERE computed IS NULL
