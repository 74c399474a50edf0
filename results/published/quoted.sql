-- What is known only from another paper's comparison; the tables themselves could not be had. CoDyRA (Lu et al., arXiv
-- 2412.01004), in the README of its repository: means, "5-shot MTIL" with 5 images per class of the eleven tasks in order I.
-- LADA (Luo et al., ICML 2025, arXiv 2505.23271): means of X-TAIL, 16 images per class of the ten datasets of RAIL (Xu et al.,
-- NeurIPS 2024, arXiv 2406.18868), Table 1 in RAIL's order and Table 5 in another; its RAIL-Primal is not RAIL's, which CoDyRA
-- quotes. MINGLE (NeurIPS 2025), Table 3: RAIL-Dual's last accuracies in MTIL.
CREATE TEMP TABLE x_tail_orders (name TEXT, datasets TEXT) STRICT;
INSERT INTO x_tail_orders VALUES
('RAIL', 'aircraft, caltech101, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397'),
('LADA', 'stanford_cars, aircraft, oxford_pet, food, sun397, mnist, flowers, dtd, caltech101, eurosat');
INSERT INTO published_tasks
SELECT datasets, key, value
FROM x_tail_orders, json_each('["' || replace(datasets, ', ', '", "') || '"]');

INSERT INTO published_rows (source, method, setting, task_order, metric, mean)
WITH quoted (source, method, setting, orders, transfer, average, last) AS (VALUES
    ('CoDyRA, 5-shot MTIL', 'ZSCL', 'few_shot', 'I', 65.3, 64.4, 67.4),
    ('CoDyRA, 5-shot MTIL', 'MA', 'few_shot', 'I', 68.9, 71.4, 76.1),
    ('CoDyRA, 5-shot MTIL', 'RAIL-Primal', 'few_shot', 'I', 69.4, 71.9, 77.2),
    ('CoDyRA, X-TAIL', 'MA', 'x_tail', 'RAIL', 56.0, 63.0, 70.5),
    ('CoDyRA, X-TAIL', 'RAIL-Primal', 'x_tail', 'RAIL', 62.4, 70.7, 79.1),
    ('LADA, Table 1', 'LwF', 'x_tail', 'RAIL', 47.7, 53.2, 62.8),
    ('LADA, Table 1', 'WiSE-FT', 'x_tail', 'RAIL', 52.3, 54.2, 58.0),
    ('LADA, Table 1', 'ZSCL', 'x_tail', 'RAIL', 59.0, 60.0, 63.4),
    ('LADA''s own run, Table 1', 'RAIL-Primal', 'x_tail', 'RAIL', NULL, 71.1, 81.4),
    ('LADA, Table 1', 'RAIL-Dual', 'x_tail', 'RAIL', NULL, 71.3, 82.3),
    ('LADA, Table 5', 'ZSCL', 'x_tail', 'LADA', 56.9, 63.6, 69.4),
    ('LADA, Table 5', 'MA', 'x_tail', 'LADA', 50.2, 61.8, 71.7),
    ('LADA''s own run, Table 5', 'RAIL-Primal', 'x_tail', 'LADA', NULL, 67.3, 81.8),
    ('LADA, Table 5', 'RAIL-Dual', 'x_tail', 'LADA', NULL, 67.5, 82.5)
), ordered AS (
    SELECT source, method, setting, coalesce(datasets, orders) AS task_order, transfer, average, last
    FROM quoted
    LEFT JOIN x_tail_orders ON name = orders
)
SELECT source, method, setting, task_order, 'transfer', transfer FROM ordered WHERE transfer IS NOT NULL
UNION ALL SELECT source, method, setting, task_order, 'average', average FROM ordered
UNION ALL SELECT source, method, setting, task_order, 'last', last FROM ordered;

INSERT INTO published_rows (source, method, setting, task_order, metric, mean, accuracies) VALUES
('MINGLE, Table 3', 'RAIL-Dual', 'full_shot', 'I', 'last', 86.8, '[52.5, 96.8, 83.3, 80.1, 96.4, 99.0, 89.9, 98.8, 93.5, 85.5, 79.2]');

-- Class-incremental learning, of ZSCL's table on CIFAR100 (Zheng et al., ICCV 2023): its own rows as NuSA-CL's Table 3 has them
-- and the others from a rebuttal of other authors. No Avg of these was seen.
INSERT INTO published_steps (source, method, dataset, tasks, average, last) VALUES
('ZSCL, quoted by NuSA-CL', 'ZSCL', 'cifar100', 10, NULL, 73.65),
('ZSCL, quoted by NuSA-CL', 'ZSCL', 'cifar100', 20, NULL, 69.58),
('ZSCL, quoted by NuSA-CL', 'ZSCL', 'cifar100', 50, NULL, 67.36),
('ZSCL, quoted in a rebuttal', 'LwF', 'cifar100', 10, NULL, 48.04),
('ZSCL, quoted in a rebuttal', 'iCaRL', 'cifar100', 10, NULL, 70.97);
