-- Means that are quoted in another paper's comparison, where the tables themselves could not be had: CoDyRA (Lu et al., arXiv
-- 2412.01004), in the README of its repository. "5-shot MTIL" has 5 images per class of the eleven tasks in order I, "X-TAIL"
-- the ten datasets of RAIL (Xu et al., NeurIPS 2024, arXiv 2406.18868).
INSERT INTO published_tasks
SELECT 'aircraft, caltech101, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397', key, value
FROM json_each('["aircraft", "caltech101", "dtd", "eurosat", "flowers", "food", "mnist", "oxford_pet", "stanford_cars", "sun397"]');

INSERT INTO published_rows (source, method, setting, task_order, metric, mean)
WITH quoted (source, method, setting, task_order, transfer, average, last) AS (VALUES
    ('CoDyRA, 5-shot MTIL', 'ZSCL', 'few_shot', 'I', 65.3, 64.4, 67.4),
    ('CoDyRA, 5-shot MTIL', 'MA', 'few_shot', 'I', 68.9, 71.4, 76.1),
    ('CoDyRA, 5-shot MTIL', 'RAIL-Primal', 'few_shot', 'I', 69.4, 71.9, 77.2),
    ('CoDyRA, X-TAIL', 'MA', 'x_tail', 'aircraft, caltech101, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397', 56.0, 63.0, 70.5),
    ('CoDyRA, X-TAIL', 'RAIL-Primal', 'x_tail', 'aircraft, caltech101, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397', 62.4, 70.7, 79.1)
)
SELECT source, method, setting, task_order, 'transfer', transfer FROM quoted
UNION ALL SELECT source, method, setting, task_order, 'average', average FROM quoted
UNION ALL SELECT source, method, setting, task_order, 'last', last FROM quoted;
