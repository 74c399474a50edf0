-- MoE-Adapters (Yu et al., CVPR 2024). Its MTIL tables as printed, with the same digits, in two later papers: DPW (Jang
-- et al., CVPR 2026, arXiv 2604.18075), Tables E.3 and E.4, and LEBA (NeurIPS 2025), Tables 1 and 2. Park's rows of the
-- same name are runs of Park's own.
INSERT INTO published_rows (source, method, setting, task_order, metric, mean, accuracies) VALUES
('MoE-Adapters, in DPW Table E.3', 'MA', 'full_shot', 'I', 'transfer', 68.9, '[null, 87.9, 68.2, 44.4, 49.9, 70.7, 88.7, 59.7, 89.1, 64.5, 65.5]'),
('MoE-Adapters, in DPW Table E.3', 'MA', 'full_shot', 'I', 'average', 76.7, '[50.2, 91.9, 83.1, 69.4, 78.9, 84.0, 89.1, 73.7, 89.3, 67.7, 66.9]'),
('MoE-Adapters, in DPW Table E.3', 'MA', 'full_shot', 'I', 'last', 85.0, '[49.8, 92.2, 86.1, 78.1, 95.7, 94.3, 89.5, 98.1, 89.9, 81.6, 80.0]'),
('MoE-Adapters, in DPW Table E.4, order II', 'MA', 'full_shot', 'II', 'transfer', 64.3, '[null, 88.8, 59.5, 89.1, 69.9, 64.4, 18.1, 86.9, 43.7, 54.6, 68.2]'),
('MoE-Adapters, in DPW Table E.4, order II', 'MA', 'full_shot', 'II', 'average', 74.7, '[84.9, 89.9, 89.3, 91.4, 86.2, 72.2, 33.4, 89.4, 53.3, 61.4, 69.9]'),
('MoE-Adapters, in DPW Table E.4, order II', 'MA', 'full_shot', 'II', 'last', 84.1, '[84.1, 88.5, 94.0, 91.8, 94.1, 77.8, 50.4, 93.3, 77.1, 87.7, 86.6]');

-- Class-incremental learning: the authors' logs (github.com/JiazuoYu/MoE-Adapters4CL,
-- cil/experiments/class/*/metrics.json). TinyImageNet's first task has 100 classes and counts in the Avg.
INSERT INTO published_steps (source, method, dataset, tasks, average, last) VALUES
('MoE-Adapters, authors'' logs', 'MA', 'cifar100', 10, 85.21, 77.52),
('MoE-Adapters, authors'' logs', 'MA', 'cifar100', 20, 83.72, 76.20),
('MoE-Adapters, authors'' logs', 'MA', 'cifar100', 50, 83.77, 75.24),
('MoE-Adapters, authors'' logs', 'MA', 'tiny_imagenet', 6, 81.12, 76.87),
('MoE-Adapters, authors'' logs', 'MA', 'tiny_imagenet', 11, 80.23, 76.35),
('MoE-Adapters, authors'' logs', 'MA', 'tiny_imagenet', 21, 79.96, 75.77);
