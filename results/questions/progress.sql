-- column: task,step,left right
-- column: loss 3
-- column: images/s 0

-- A row per run that goes on: what it reports beside the database each second or, without a report, its last committed
-- step.
WITH last AS (
    SELECT run, task, iteration, loss, max(task * 4294967296 + iteration)
    FROM chosen
    JOIN steps USING (run)
    GROUP BY run
), report AS (
    SELECT chosen.*, is_gone(run, host) AS gone,
           CASE WHEN json_valid(live(run, host)) THEN live(run, host)
                ELSE json_object('activity', iif(task IS NULL, NULL, 'train'), 'subject', name, 'task', task + 1,
                                 'tasks', tasks, 'step', iteration, 'loss', loss) END AS said
    FROM chosen
    LEFT JOIN last USING (run)
    LEFT JOIN tasks USING (run, task)
), number AS (
    SELECT *, json_extract(said, '$.task') AS part, json_extract(said, '$.tasks') AS parts,
           json_extract(said, '$.step') AS reached, json_extract(said, '$.steps') AS steps,
           json_extract(said, '$.images_per_second') AS speed, min(json_extract(said, '$.done'), 1) AS share,
           CAST(json_extract(said, '$.seconds_left') + 0.5 AS INTEGER) AS seconds
    FROM report
)
SELECT run, suite, policy, seed,
       iif(part > 0, part || iif(parts > 0, '/' || parts, ''), NULL) AS task,
       iif(gone, 'process is gone', rtrim(json_extract(said, '$.activity') || ' '
                                          || coalesce(json_extract(said, '$.subject'), ''))) AS doing,
       iif(reached > 0, reached || iif(steps > 0, '/' || steps, ''), NULL) AS step,
       iif(share > 0, substr('██████████', 1, CAST(share * 10 AS INTEGER))
                      || substr('░░░░░░░░░░', 1, 10 - CAST(share * 10 AS INTEGER))
                      || printf(' %2d%%', share * 100), NULL) AS done,
       CASE WHEN gone OR NOT coalesce(json_extract(said, '$.seconds_left') >= 0, 0) THEN NULL
            WHEN seconds < 60 THEN seconds || ' s'
            WHEN seconds < 3600 THEN printf('%d min %02d s', seconds / 60, seconds % 60)
            ELSE printf('%d h %02d min', seconds / 3600, seconds / 60 % 60) END AS left,
       nullif(json_extract(said, '$.loss'), 0) AS loss,
       iif(speed > 0 AND NOT gone, speed, NULL) AS "images/s", method
FROM number
ORDER BY run
