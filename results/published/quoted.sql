-- Numbers known only from comparisons in other papers; the original tables were not available. The pages of two
-- projects (github.com/Artificer-AI-Lab): CoDyRA (Lu et al., arXiv 2412.01004), MTIL with 5 images per class; MoRAM
-- (arXiv 2506.21035, ICML 2026), X-TAIL, the ten datasets of RAIL (Xu et al., NeurIPS 2024, arXiv 2406.18868), whose
-- printed gains over MA match these rows. Its last row of LwF repeats iCaRL's and is left out.
CREATE TEMP TABLE x_tail_orders (name TEXT, task_order TEXT) STRICT; -- RAIL's, and another one of LADA
INSERT INTO x_tail_orders VALUES
('RAIL', 'aircraft, caltech101, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397'),
('LADA', 'stanford_cars, aircraft, oxford_pet, food, sun397, mnist, flowers, dtd, caltech101, eurosat');
INSERT INTO published_tasks
SELECT task_order, key, value
FROM x_tail_orders, json_each('["' || replace(task_order, ', ', '", "') || '"]');

INSERT INTO published_rows (source, method, setting, task_order, metric, mean, accuracies) VALUES
('CoDyRA, 5-shot MTIL', 'Zero-shot', 'few_shot', 'I', 'transfer', 69.4, '[null, 88.4, 68.2, 44.6, 54.9, 71.0, 88.5, 59.4, 89.0, 64.7, 65.2]'),
('CoDyRA, 5-shot MTIL', 'MA', 'few_shot', 'I', 'transfer', 68.9, '[null, 87.9, 68.2, 44.1, 48.1, 64.7, 88.8, 69.0, 89.1, 64.5, 65.1]'),
('CoDyRA, 5-shot MTIL', 'MA', 'few_shot', 'I', 'average', 71.4, '[30.0, 89.6, 73.9, 58.7, 69.3, 79.3, 88.1, 76.5, 89.1, 65.3, 65.8]'),
('CoDyRA, 5-shot MTIL', 'MA', 'few_shot', 'I', 'last', 76.1, '[30.1, 89.3, 74.9, 64.0, 82.3, 89.4, 87.1, 89.0, 89.1, 69.5, 72.5]'),
('CoDyRA, 5-shot MTIL', 'RAIL-Primal', 'few_shot', 'I', 'transfer', 69.4, '[null, 88.4, 68.2, 44.6, 54.9, 71.0, 88.5, 59.4, 89.0, 64.7, 65.2]'),
('CoDyRA, 5-shot MTIL', 'RAIL-Primal', 'few_shot', 'I', 'average', 71.9, '[32.9, 94.5, 69.9, 58.1, 71.8, 84.4, 88.5, 70.4, 89.0, 66.1, 65.7]'),
('CoDyRA, 5-shot MTIL', 'RAIL-Primal', 'few_shot', 'I', 'last', 77.2, '[32.9, 95.1, 70.3, 63.2, 81.5, 95.6, 88.5, 89.7, 89.0, 72.5, 71.0]'),
('CoDyRA, 5-shot MTIL', 'LwF', 'few_shot', 'I', 'transfer', 50.0, '[null, 72.1, 49.2, 35.9, 44.5, 41.1, 66.6, 50.5, 69.0, 19.0, 51.7]'),
('CoDyRA, 5-shot MTIL', 'LwF', 'few_shot', 'I', 'average', 49.2, '[23.5, 77.4, 43.5, 41.7, 43.5, 52.2, 54.6, 63.4, 68.0, 21.3, 52.6]'),
('CoDyRA, 5-shot MTIL', 'LwF', 'few_shot', 'I', 'last', 46.5, '[22.1, 58.2, 17.9, 32.1, 28.1, 66.7, 46.0, 84.3, 64.1, 31.5, 60.1]'),
('CoDyRA, 5-shot MTIL', 'LwF-VR', 'few_shot', 'I', 'transfer', 60.1, '[null, 82.2, 62.5, 40.1, 40.1, 56.3, 80.0, 60.9, 77.6, 40.5, 60.8]'),
('CoDyRA, 5-shot MTIL', 'LwF-VR', 'few_shot', 'I', 'average', 62.5, '[24.9, 89.1, 64.2, 53.4, 54.3, 70.8, 79.2, 66.5, 79.2, 44.1, 61.6]'),
('CoDyRA, 5-shot MTIL', 'LwF-VR', 'few_shot', 'I', 'last', 66.9, '[22.9, 89.8, 59.3, 57.1, 57.6, 79.2, 78.3, 77.7, 83.6, 60.1, 69.8]'),
('CoDyRA, 5-shot MTIL', 'WiSE-FT', 'few_shot', 'I', 'transfer', 57.7, '[null, 77.6, 60.0, 41.3, 39.4, 53.0, 76.6, 58.1, 75.5, 37.3, 58.2]'),
('CoDyRA, 5-shot MTIL', 'WiSE-FT', 'few_shot', 'I', 'average', 63.7, '[32.0, 87.7, 61.0, 55.8, 68.1, 69.3, 76.8, 71.5, 77.6, 42.0, 59.3]'),
('CoDyRA, 5-shot MTIL', 'WiSE-FT', 'few_shot', 'I', 'last', 71.9, '[30.8, 88.9, 59.6, 60.3, 80.9, 81.7, 77.1, 94.9, 83.2, 62.8, 70.0]'),
('CoDyRA, 5-shot MTIL', 'ZSCL', 'few_shot', 'I', 'transfer', 65.3, '[null, 84.0, 68.1, 44.8, 46.8, 63.6, 84.9, 61.4, 81.4, 55.5, 62.2]'),
('CoDyRA, 5-shot MTIL', 'ZSCL', 'few_shot', 'I', 'average', 64.4, '[28.2, 88.6, 66.5, 53.5, 56.3, 73.4, 83.1, 56.4, 82.4, 57.5, 62.9]'),
('CoDyRA, 5-shot MTIL', 'ZSCL', 'few_shot', 'I', 'last', 67.4, '[26.8, 88.5, 63.7, 55.7, 60.2, 82.1, 82.6, 58.6, 85.9, 66.7, 70.4]');

INSERT INTO published_rows (source, method, setting, task_order, metric, mean, accuracies)
WITH printed (method, metric, mean, accuracies) AS (VALUES
    ('Zero-shot', 'transfer', 62.4, '[null, 76.8, 37.3, 36.7, 63.6, 84.0, 46.7, 86.7, 66.1, 63.7]'),
    ('Zero-shot', 'average', 58.5, '[23.5, 76.8, 37.3, 36.7, 63.6, 84.0, 46.7, 86.7, 66.1, 63.7]'),
    ('Zero-shot', 'last', 58.5, '[23.5, 76.8, 37.3, 36.7, 63.6, 84.0, 46.7, 86.7, 66.1, 63.7]'),
    ('LwF', 'transfer', 47.7, '[null, 66.6, 26.9, 19.5, 51.0, 78.4, 26.6, 68.9, 35.5, 56.1]'),
    ('LwF', 'average', 53.2, '[24.7, 79.7, 38.3, 36.9, 63.9, 81.0, 36.5, 71.9, 42.7, 56.7]'),
    ('WiSE-FT', 'transfer', 52.3, '[null, 70.1, 31.9, 25.3, 56.3, 79.8, 29.9, 74.9, 45.6, 56.8]'),
    ('WiSE-FT', 'average', 54.2, '[27.1, 76.5, 40.9, 31.3, 68.7, 81.6, 31.4, 74.7, 51.7, 58.4]'),
    ('WiSE-FT', 'last', 58.0, '[21.8, 76.8, 42.9, 20.8, 77.5, 84.9, 30.7, 76.6, 75.8, 72.5]'),
    ('iCaRL', 'transfer', 61.7, '[null, 71.7, 35.0, 43.0, 63.4, 86.9, 43.9, 87.8, 63.7, 60.0]'),
    ('iCaRL', 'average', 61.0, '[25.4, 72.1, 37.5, 51.6, 65.1, 87.1, 59.1, 88.0, 63.7, 60.1]'),
    ('iCaRL', 'last', 64.0, '[25.5, 72.1, 38.9, 55.4, 65.5, 87.3, 81.9, 88.6, 63.6, 61.5]'),
    ('ZSCL', 'transfer', 59.0, '[null, 73.3, 32.6, 36.8, 62.1, 83.8, 42.1, 83.6, 56.5, 60.2]'),
    ('ZSCL', 'average', 60.0, '[36.0, 75.0, 40.7, 40.5, 71.0, 85.3, 46.3, 83.3, 60.7, 61.5]'),
    ('ZSCL', 'last', 63.4, '[33.1, 75.3, 43.5, 35.2, 74.6, 87.4, 50.4, 84.2, 77.3, 73.4]'),
    ('MA', 'transfer', 56.0, '[null, 71.0, 34.9, 19.2, 63.0, 86.6, 20.0, 87.2, 63.7, 58.6]'),
    ('MA', 'average', 63.0, '[43.6, 77.9, 52.1, 34.7, 75.9, 86.3, 45.2, 87.4, 66.6, 60.2]'),
    ('MA', 'last', 70.5, '[43.2, 78.7, 57.6, 32.8, 79.4, 86.0, 86.7, 87.8, 78.2, 74.2]'),
    ('RAIL-Primal', 'transfer', 62.4, '[null, 76.8, 37.3, 36.7, 63.6, 84.0, 46.7, 86.7, 66.1, 63.7]'),
    ('RAIL-Primal', 'average', 70.7, '[42.4, 89.8, 55.7, 68.5, 84.0, 83.3, 65.3, 85.8, 67.9, 64.5]'),
    ('RAIL-Primal', 'last', 79.1, '[41.7, 94.0, 66.0, 86.4, 97.2, 82.4, 93.1, 83.6, 75.0, 71.3]')
)
SELECT 'MoRAM, X-TAIL', method, 'x_tail', task_order, metric, mean, accuracies
FROM printed
JOIN x_tail_orders ON name = 'RAIL';

-- Means of X-TAIL in LADA (Luo et al., ICML 2025, arXiv 2505.23271), 16 images per class: Table 1 in RAIL's order, Table 5 in
-- another. Its runs of RAIL are not RAIL's own.
INSERT INTO published_rows (source, method, setting, task_order, metric, mean)
WITH quoted (source, name, method, metric, mean) AS (VALUES
    ('LADA, Table 1', 'RAIL', 'LwF', 'last', 62.8),
    ('LADA''s own run, Table 1', 'RAIL', 'RAIL-Primal', 'average', 71.1),
    ('LADA''s own run, Table 1', 'RAIL', 'RAIL-Primal', 'last', 81.4),
    ('LADA''s own run, Table 1', 'RAIL', 'RAIL-Dual', 'average', 71.3),
    ('LADA''s own run, Table 1', 'RAIL', 'RAIL-Dual', 'last', 82.3),
    ('LADA, Table 5', 'LADA', 'ZSCL', 'transfer', 56.9),
    ('LADA, Table 5', 'LADA', 'ZSCL', 'average', 63.6),
    ('LADA, Table 5', 'LADA', 'ZSCL', 'last', 69.4),
    ('LADA, Table 5', 'LADA', 'MA', 'transfer', 50.2),
    ('LADA, Table 5', 'LADA', 'MA', 'average', 61.8),
    ('LADA, Table 5', 'LADA', 'MA', 'last', 71.7),
    ('LADA''s own run, Table 5', 'LADA', 'RAIL-Primal', 'average', 67.3),
    ('LADA''s own run, Table 5', 'LADA', 'RAIL-Primal', 'last', 81.8),
    ('LADA''s own run, Table 5', 'LADA', 'RAIL-Dual', 'average', 67.5),
    ('LADA''s own run, Table 5', 'LADA', 'RAIL-Dual', 'last', 82.5)
)
SELECT source, method, 'x_tail', task_order, metric, mean
FROM quoted
JOIN x_tail_orders USING (name);

-- RAIL-Dual in MTIL, from Table 3 of MINGLE (NeurIPS 2025).
INSERT INTO published_rows (source, method, setting, task_order, metric, mean, accuracies) VALUES
('MINGLE, Table 3', 'RAIL-Dual', 'full_shot', 'I', 'last', 86.8, '[52.5, 96.8, 83.3, 80.1, 96.4, 99.0, 89.9, 98.8, 93.5, 85.5, 79.2]');

-- Class-incremental learning: ZSCL's table on CIFAR100 (Zheng et al., ICCV 2023). Its own rows are from NuSA-CL's Table
-- 3, the others from a rebuttal of other authors. Their Avg was not available.
INSERT INTO published_steps (source, method, dataset, tasks, average, last) VALUES
('ZSCL, quoted by NuSA-CL', 'ZSCL', 'cifar100', 10, NULL, 73.65),
('ZSCL, quoted by NuSA-CL', 'ZSCL', 'cifar100', 20, NULL, 69.58),
('ZSCL, quoted by NuSA-CL', 'ZSCL', 'cifar100', 50, NULL, 67.36),
('ZSCL, quoted in a rebuttal', 'LwF', 'cifar100', 10, NULL, 48.04),
('ZSCL, quoted in a rebuttal', 'iCaRL', 'cifar100', 10, NULL, 70.97);
