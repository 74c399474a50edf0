measured AS ( -- the metrics of each run or, with a dataset, of its task
    SELECT run, NULL AS name
-- each: , {name}
    FROM metrics
    WHERE :dataset IS NULL
    UNION ALL
    SELECT run, name
-- each: , {name}
    FROM task_metrics
    JOIN tasks USING (run, task)
    WHERE :dataset IS NOT NULL AND name = :dataset -- the first half spares the work without one
)
