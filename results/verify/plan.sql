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
