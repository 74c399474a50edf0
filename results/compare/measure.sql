-- The metrics asked for, of runs whose matrix is complete: of each task, then of each run.
CREATE TEMP TABLE trained (run INTEGER PRIMARY KEY, tasks INTEGER, accumulates INTEGER); -- in the order of evaluations
INSERT INTO trained SELECT run, tasks, accumulates FROM compared WHERE NOT untrained;

CREATE TEMP TABLE of_task (run INTEGER, task INTEGER, tasks INTEGER
-- each asked: , {name} REAL
, PRIMARY KEY (run, task)) WITHOUT ROWID;

INSERT INTO of_task
SELECT run, task, tasks
-- each asked: , {sql} AS {name}
FROM trained
CROSS JOIN (SELECT run, task, after_task, 100.0 * correct / images AS accuracy FROM evaluations) USING (run)
GROUP BY run, task
HAVING count(*) FILTER (WHERE after_task >= 0 AND after_task < tasks) = iif(accumulates = 1, tasks - task, tasks);

-- A model that is never trained stays as it was: a(i, j) = z(j).
INSERT INTO of_task
SELECT run, task, tasks
-- each asked: , {sql} AS {name}
FROM (SELECT run, compared.tasks AS tasks, evaluations.task AS task, again.task AS after_task, 100.0 * correct / images AS accuracy
      FROM compared
      CROSS JOIN evaluations USING (run)
      JOIN (SELECT run, task FROM tasks UNION ALL SELECT run, -1 FROM runs) AS again USING (run)
      WHERE untrained AND after_task = -1)
GROUP BY run, task;

CREATE TEMP TABLE seen AS
SELECT run
-- each asked: , iif({images}, {sql}, NULL) AS {name}
FROM (SELECT run, tasks, NULL AS task, after_task, 100.0 * sum(correct) / sum(images) AS accuracy
      FROM compared
      CROSS JOIN evaluations USING (run)
      WHERE accumulates AND after_task NOT BETWEEN 0 AND evaluations.task - 1
      GROUP BY run, after_task)
GROUP BY run;

CREATE UNIQUE INDEX temp.seen_run ON seen (run);

CREATE TEMP TABLE of_run (run INTEGER PRIMARY KEY
-- each asked: , {name} REAL
);

INSERT INTO of_run
SELECT of_task.run
-- each asked: , CASE WHEN count(of_task.{name}) = count(*) - {skips} THEN coalesce(seen.{name}, avg(of_task.{name})) END
FROM of_task
LEFT JOIN seen USING (run)
GROUP BY of_task.run
HAVING count(*) = tasks;

UPDATE compared SET complete = true WHERE run IN (SELECT run FROM of_run);

-- each asked: INSERT INTO measured SELECT configuration, place, 0, seed, of_run.{name} FROM request JOIN metric ON name = '{name}' JOIN of_run JOIN compared USING (run) WHERE of_run.{name} IS NOT NULL AND only_dataset IS NULL;

-- each asked: INSERT OR IGNORE INTO measured SELECT configuration, metric.place, dataset.place, seed, of_task.{name} FROM request JOIN metric ON metric.name = '{name}' CROSS JOIN of_task CROSS JOIN compared USING (run) CROSS JOIN tasks USING (run, task) JOIN dataset ON dataset.name = tasks.name WHERE (datasets OR only_dataset IS NOT NULL) AND of_task.{name} IS NOT NULL AND complete AND coalesce(only_dataset, dataset.name) = dataset.name;
