-- Numbers printed in papers, as tables of a connection: a file NAME.jsonl of this folder is the table published_NAME, a line of it
-- is a row, which the number of the line names, and its keys are the columns. Percent, as printed; nothing here was computed by this
-- program. `sources` says where the numbers of a source were read.

-- The datasets of an order; task_order is what runs call it.
CREATE TEMP VIEW published_tasks AS
SELECT "order", task_order, key AS task, value AS dataset FROM published_orders, json_each(datasets);

-- Rows of tables of sequences: an accuracy per task, and their mean as printed; images per class, where not all are trained on.
CREATE TEMP VIEW published_rows AS
SELECT row, source, method, setting, task_order, metric, mean, accuracies,
       coalesce(shots, CASE setting WHEN 'few_shot' THEN 5 WHEN 'x_tail' THEN 16 END) AS shots
FROM published_sequences
JOIN (SELECT "order", task_order FROM published_orders) USING ("order");

CREATE TEMP VIEW published AS
SELECT row, source, method, setting, task_order, metric, task, dataset, value AS accuracy
FROM published_rows, json_each(accuracies)
JOIN published_tasks USING (task_order)
WHERE task = key;

-- The accuracy on one task after each task, of columns that are printed whole.
CREATE TEMP VIEW published_matrix AS
SELECT source, method, setting, trained.task_order AS task_order, trained.task AS after_task, trained.dataset AS trained,
       published_columns.task AS task, tested.dataset AS name, value AS accuracy
FROM published_columns, json_each(accuracies)
JOIN published_tasks AS trained USING ("order")
JOIN published_tasks AS tested USING ("order")
WHERE trained.task = key AND tested.task = published_columns.task;

-- Numbers of test images in the splits that papers use, torchvision's and CoOp's.
CREATE TEMP VIEW published_images AS
SELECT dataset, value AS images FROM published_splits, json_each(images);
