-- What the text of each suite says. Runs with the same text share what the first of them was told.
CREATE TEMP TABLE told AS
SELECT run, min(run) OVER (PARTITION BY suite_text, program_version) AS first
FROM looked_at JOIN runs USING (run)
WHERE EXISTS (SELECT 1 FROM settings WHERE settings.run = runs.run);

-- Without a hash the text is of another state of the program, which may have had other keys.
CREATE TEMP TABLE suites AS
SELECT first, said, json_extract(said, '$.hash') AS hash
FROM (SELECT first, suite_said(suite_text, program_version) AS said FROM told JOIN runs USING (run) WHERE run = first);

CREATE TEMP TABLE said (first INTEGER, key TEXT, value TEXT, PRIMARY KEY (first, key)) WITHOUT ROWID;
INSERT INTO said SELECT first, key, value FROM suites JOIN json_each(said, '$.settings');

-- What the settings say of each task's training. A single training on all tasks is recorded under the last of them.
CREATE TEMP TABLE plan (run INTEGER, task INTEGER, planned, schedule_end, warmup, rate, batch, images, classes, last, logged,
                        PRIMARY KEY (run, task)) WITHOUT ROWID;
INSERT INTO plan
WITH entries AS ( -- tasks that one dataset was cut into have the entry of that dataset
    SELECT facts.*, task, training_images, classes,
           'tasks.' || iif("data.split_by" IN ('labels', 'order'), trim("data.order", '[]"'), name) || '.' AS own
    FROM facts
    CROSS JOIN tasks USING (run)
    WHERE trained
), said AS (
    SELECT entries.run AS run, task, training_images, classes, joint,
           coalesce(max(value) FILTER (WHERE key = own || 'iterations'), "training.iterations") AS iterations,
           coalesce(max(value) FILTER (WHERE key = own || 'epochs'), "training.epochs", 0) AS epochs,
           coalesce(max(value) FILTER (WHERE key = own || 'batch'), "training.batch") AS batch,
           coalesce(max(value) FILTER (WHERE key = own || 'warmup'), "training.warmup") AS warmup,
           coalesce(max(value) FILTER (WHERE key = own || 'warmup_epochs'), "training.warmup_epochs", 0) AS warm_epochs,
           coalesce(max(value) FILTER (WHERE key = own || 'learning_rate'), "training.learning_rate") AS rate,
           'true' IS coalesce(max(value) FILTER (WHERE key = own || 'reference_iterations'),
                              "training.reference_iterations") AS more
    FROM entries
    LEFT JOIN settings ON settings.run = entries.run AND key > own AND key < own || '~'
    GROUP BY entries.run, task
), counted AS (
    SELECT *, iif(epochs > 0, epochs * epoch, iterations) AS steps, iif(warm_epochs > 0, warm_epochs * epoch, warmup) AS warm
    FROM (SELECT *, (training_images + batch - 1) / batch AS epoch FROM said)
)
SELECT run, max(task), sum(steps + more), sum(steps), warm, iif(joint, NULL, rate), batch,
       (steps + more) / epoch * training_images + min((steps + more) % epoch * batch, training_images), classes,
       (SELECT max(iteration) FROM steps WHERE steps.run = counted.run AND steps.task = max(counted.task)),
       (SELECT count(*) FROM steps WHERE steps.run = counted.run AND steps.task = max(counted.task))
FROM counted
GROUP BY run, iif(joint, -1, task);

-- What contradicts something else in the results per image (results/store/per_image.c); null: data of another size.
-- Where tasks are told apart among all classes, those of earlier tasks come before a task's own.
CREATE TEMP TABLE tested AS
SELECT per_image.run AS run, per_image.task AS task, per_image.after_task AS after_task, correct, images,
       length(labels) / 2 AS labelled,
       image_counts(per_image.kind, per_image.data, images, labels, classes,
                    iif(together, (SELECT total(classes) FROM tasks AS earlier
                                   WHERE earlier.run = per_image.run AND earlier.task < per_image.task), 0),
                    iif(together, (SELECT total(classes) FROM tasks AS other WHERE other.run = per_image.run), classes),
                    iif(selects, per_image.after_task, -1), zero_shot.data) AS counts
FROM (SELECT run, setting IN ('x_tail', 'class_incremental', 'open_domain') AS together,
             selector <> 'none' AND setting NOT IN ('class_incremental', 'open_domain') AS selects
      FROM looked_at JOIN runs USING (run)) AS runs
CROSS JOIN per_image USING (run)
CROSS JOIN evaluations USING (run, task, after_task)
JOIN tasks USING (run, task)
LEFT JOIN test_labels USING (run, task)
LEFT JOIN per_image AS zero_shot ON zero_shot.run = per_image.run AND zero_shot.task = per_image.task
                                    AND zero_shot.after_task = -1 AND zero_shot.kind = 'predictions'
                                    AND selects AND per_image.after_task >= 0;

CREATE TEMP TABLE image_routers (run, task, after_task, router INTEGER, images, PRIMARY KEY (run, task, after_task, router))
WITHOUT ROWID;
INSERT INTO image_routers
SELECT run, task, after_task, key, value FROM tested JOIN json_each(counts, '$.routers') WHERE value > 0;

CREATE TEMP TABLE kept_files AS
SELECT run, path, bytes, digest, file_state(path, bytes) AS state
FROM looked_at JOIN runs USING (run) JOIN artifacts USING (run)
WHERE status <> 'running';
