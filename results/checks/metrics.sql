-- title: metrics of tasks and runs are those of results/metrics.c
-- expect: no rows
WITH shown AS MATERIALIZED (
    SELECT run, task, transfer, average, last, forgetting, backward_transfer, forward_transfer, gain, zero_shot
    FROM task_metrics
    UNION ALL
    SELECT run, -1, transfer, average, last, forgetting, backward_transfer, forward_transfer, gain, zero_shot
    FROM metrics
), pairs AS ( -- rows that differ, in a digit at least
    SELECT run, task,
           json_array(own.transfer, own.average, own.last, own.forgetting, own.backward_transfer, own.forward_transfer,
                      own.gain, own.zero_shot) AS computed,
           json_array(shown.transfer, shown.average, shown.last, shown.forgetting, shown.backward_transfer,
                      shown.forward_transfer, shown.gain, shown.zero_shot) AS viewed
    FROM shown
    LEFT JOIN own_metrics AS own USING (run, task)
    WHERE (own.transfer, own.average, own.last, own.forgetting, own.backward_transfer, own.forward_transfer, own.gain,
           own.zero_shot)
          IS NOT (shown.transfer, shown.average, shown.last, shown.forgetting, shown.backward_transfer,
                  shown.forward_transfer, shown.gain, shown.zero_shot)
), numbers AS (
    SELECT run, task, metric.value AS metric, json_extract(computed, '$[' || metric.key || ']') AS expected,
           json_extract(viewed, '$[' || metric.key || ']') AS found
    FROM pairs, json_each('["transfer", "average", "last", "forgetting", "backward_transfer", "forward_transfer", "gain",
                            "zero_shot"]') AS metric
)
SELECT 'metrics' AS what, run, iif(task < 0, 'metrics, ', 'task_metrics, task ' || task || ', ') || metric AS "where",
       coalesce(expected, 'none') AS expected, coalesce(found, 'none') AS found
FROM numbers
WHERE (expected IS NULL) <> (found IS NULL) OR abs(expected - found) > 1e-9 * (1 + abs(expected))
UNION ALL
SELECT 'metrics', run, iif(task < 0, 'metrics', 'task_metrics, task ' || task), 'a row', 'none'
FROM (SELECT run, task FROM own_metrics WHERE (SELECT count(*) FROM shown) < (SELECT count(*) FROM own_metrics)
      EXCEPT SELECT run, task FROM shown)
