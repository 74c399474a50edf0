routed AS ( -- where the images of each task were sent after the last one, in runs of `asked_runs`, per `part` of them
    SELECT part, task, router, sum(count) AS count, sum(sum(count)) OVER (PARTITION BY part, task) AS images,
           100.0 * sum(count) / sum(sum(count)) OVER (PARTITION BY part, task) AS share, max(after_task) AS after_task
    FROM asked_runs
    JOIN router_choices USING (run)
    WHERE after_task = (SELECT max(after_task) FROM router_choices AS last WHERE last.run = asked_runs.run)
    GROUP BY part, task, router
)
