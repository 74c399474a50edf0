routed AS ( -- where the images of each task were sent after the last one, in runs of `parts`, per `part` of them
    SELECT part, task, router, sum(count) AS count, sum(sum(count)) OVER (PARTITION BY part, task) AS images,
           100.0 * sum(count) / sum(sum(count)) OVER (PARTITION BY part, task) AS share, max(after_task) AS after_task
    FROM parts
    JOIN router_choices USING (run)
    WHERE after_task = (SELECT max(after_task) FROM router_choices AS last WHERE last.run = parts.run)
    GROUP BY part, task, router
)
