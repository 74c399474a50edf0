-- Numbers printed in papers, as tables of a connection: `published` (metrics per task) and `published_matrix` (columns
-- of the accuracy matrix). Percent, as printed; nothing here was computed by this program. The rows are in the other
-- files of this folder.

-- The datasets of an order.
CREATE TEMP TABLE published_tasks (task_order TEXT, task INTEGER, dataset TEXT) STRICT;

-- Rows of a table: one accuracy per task, and their mean as printed; null where unknown.
CREATE TEMP TABLE published_rows (
    row INTEGER PRIMARY KEY,
    source TEXT,
    method TEXT,
    setting TEXT,
    task_order TEXT,
    metric TEXT,
    mean REAL,
    accuracies TEXT
) STRICT;

-- Test images of the datasets in the splits that papers use, torchvision's and CoOp's.
CREATE TEMP TABLE published_images (dataset TEXT, images INTEGER) STRICT;
INSERT INTO published_images VALUES
('aircraft', 3333), ('caltech101', 1736), ('caltech101', 2465), ('cifar10', 10000), ('cifar100', 10000), ('dtd', 1880),
('dtd', 1692), ('eurosat', 5400), ('eurosat', 8100), ('flowers', 6149), ('flowers', 2463), ('food', 25250), ('food', 30300),
('imagenet', 50000), ('mnist', 10000), ('oxford_pet', 3669), ('stanford_cars', 8041), ('sun397', 21751), ('sun397', 19850),
('tiny_imagenet', 10000);

-- Class-incremental learning: mean over tasks of the accuracy on all classes seen (Avg), and the last accuracy.
CREATE TEMP TABLE published_steps (
    row INTEGER PRIMARY KEY,
    source TEXT,
    method TEXT,
    dataset TEXT,
    tasks INTEGER,
    average REAL,
    last REAL
) STRICT;

-- Columns of a matrix: accuracy on one task after each task. Columns that are printed in part are left out.
CREATE TEMP TABLE published_columns (
    source TEXT,
    method TEXT,
    setting TEXT,
    task_order TEXT,
    task INTEGER,
    accuracies TEXT
) STRICT;

CREATE TEMP VIEW published AS
SELECT row, source, method, setting, task_order, metric, task, dataset, value AS accuracy
FROM published_rows, json_each(accuracies)
JOIN published_tasks USING (task_order)
WHERE task = key;

CREATE TEMP VIEW published_matrix AS
SELECT source, method, setting, task_order, trained.task AS after_task, trained.dataset AS trained,
       published_columns.task AS task, tested.dataset AS name, value AS accuracy
FROM published_columns, json_each(accuracies)
JOIN published_tasks AS trained USING (task_order)
JOIN published_tasks AS tested USING (task_order)
WHERE trained.task = key AND tested.task = published_columns.task;
