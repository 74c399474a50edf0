-- Classifiers on one dataset, scratch: 0 fine-tuned, 1 from scratch. A difference is from the dense model beside it.
CREATE TEMP TABLE published_classifiers (
    row INTEGER PRIMARY KEY,
    source TEXT,
    method TEXT,
    dataset TEXT,
    scratch INTEGER,
    accuracy REAL,
    difference REAL
) STRICT;
INSERT INTO published_classifiers (source, method, dataset, scratch, accuracy, difference)
WITH pairs (method, dataset, scratch, dense, ewa, difference) AS (VALUES
    -- Table 2a
    ('ViT-S', 'cifar100', 1, 72.61, 74.33, 1.72),
    ('ViT-XT', 'cifar100', 1, 73.93, 75.20, 1.27),
    ('ViT-XT + SL', 'cifar100', 1, 77.04, 77.94, 0.90),
    ('PiT-XS', 'cifar100', 1, 74.99, 75.65, 0.66),
    ('PiT-XS + SL', 'cifar100', 1, 79.73, 80.39, 0.66),
    ('T2T-I2', 'cifar100', 1, 77.19, 77.80, 0.61),
    ('T2T-I2 + SL', 'cifar100', 1, 78.35, 78.81, 0.46),
    ('Swin-T', 'cifar100', 1, 77.38, 77.65, 0.27),
    ('Swin-T + SL', 'cifar100', 1, 80.31, 80.52, 0.21),
    -- Table 2b
    ('ViT-S', 'tiny_imagenet', 1, 57.41, 59.50, 2.09),
    ('ViT-XT', 'tiny_imagenet', 1, 55.92, 57.86, 1.94),
    ('ViT-XT + SL', 'tiny_imagenet', 1, 59.72, 60.75, 1.03),
    ('PiT-XS', 'tiny_imagenet', 1, 59.03, 61.61, 2.58),
    ('PiT-XS + SL', 'tiny_imagenet', 1, 63.11, 64.53, 1.42),
    ('T2T-I2', 'tiny_imagenet', 1, 60.39, 61.65, 1.26),
    ('T2T-I2 + SL', 'tiny_imagenet', 1, 62.57, 63.36, 0.79),
    ('Swin-T', 'tiny_imagenet', 1, 59.70, 60.66, 0.96),
    ('Swin-T + SL', 'tiny_imagenet', 1, 64.34, 65.13, 0.79),
    -- Table 3a, without and with voting
    ('ViT-S', 'modelnet40', 1, 92.42, 92.54, 0.12),
    ('ViT-S, votes', 'modelnet40', 1, 92.67, 92.79, 0.12),
    -- Table 3b, segmentation
    ('ViT-S, OA', 's3dis', 1, 89.53, 90.05, 0.52),
    ('ViT-S, mAcc', 's3dis', 1, 72.43, 73.83, 1.40),
    ('ViT-S, mIoU', 's3dis', 1, 66.62, 68.36, 1.74),
    -- Table 4a
    ('ViT-S', 'food', 0, 88.04, 88.42, 0.38),
    ('ViT-B', 'food', 0, 86.78, 87.32, 0.54),
    -- Table 4b
    ('ViT-S', 'cifar100', 0, 90.22, 90.67, 0.45),
    ('ViT-B', 'cifar100', 0, 90.71, 91.42, 0.71)
)
SELECT 'EWA, arXiv 2308.06093', kind || method, dataset, scratch, iif(kind = 'EWA ', ewa, dense), iif(kind = 'EWA ', difference, NULL)
FROM (SELECT row_number() OVER () AS place, * FROM pairs)
JOIN (SELECT 'Dense ' AS kind UNION ALL SELECT 'EWA ')
ORDER BY place, kind;
INSERT INTO published_classifiers (source, method, dataset, scratch, accuracy) VALUES
-- Table 5
('EWA, arXiv 2308.06093', 'V-MoE-S', 'cifar100', 1, 72.17),
('EWA, arXiv 2308.06093', 'V-MoE-S + Early EWA', 'cifar100', 1, 74.31),
('EWA, arXiv 2308.06093', 'V-MoE-S', 'tiny_imagenet', 1, 56.28),
('EWA, arXiv 2308.06093', 'V-MoE-S + Early EWA', 'tiny_imagenet', 1, 59.91),
('EWA, arXiv 2308.06093', 'V-MoE-S', 'modelnet40', 1, 92.27),
('EWA, arXiv 2308.06093', 'V-MoE-S + Early EWA', 'modelnet40', 1, 92.63),
('EWA, arXiv 2308.06093', 'V-MoE-S, mIoU', 's3dis', 1, 66.36),
('EWA, arXiv 2308.06093', 'V-MoE-S + Early EWA, mIoU', 's3dis', 1, 67.67),
('WideNet, arXiv 2107.11817', 'ViT-B', 'imagenet', 1, 78.6),
('WideNet, arXiv 2107.11817', 'ViT-L', 'imagenet', 1, 77.5),
('WideNet, arXiv 2107.11817', 'ViT-MoE-B', 'imagenet', 1, 77.9),
('WideNet, arXiv 2107.11817', 'ViT-MoE-L', 'imagenet', 1, 77.4),
('WideNet, arXiv 2107.11817', 'WideNet-B', 'imagenet', 1, 77.5),
('WideNet, arXiv 2107.11817', 'WideNet-L', 'imagenet', 1, 79.5),
('WideNet, arXiv 2107.11817', 'WideNet-H', 'imagenet', 1, 80.1),
('WideNet, arXiv 2107.11817', 'WideNet-B, shared norms', 'imagenet', 1, 76.3),
('WideNet, arXiv 2107.11817', 'WideNet-L, shared norms', 'imagenet', 1, 78.3),
('WideNet, arXiv 2107.11817', 'WideNet-H, shared norms', 'imagenet', 1, 76.6),
('WideNet, arXiv 2107.11817', 'WideNet-L without mixture', 'imagenet', 1, 76.9),
('WideNet, arXiv 2107.11817', 'WideNet-H without mixture', 'imagenet', 1, 79.0),
('WideNet, arXiv 2107.11817', 'WideNet-L, 12 blocks', 'imagenet', 1, 78.2),
('WideNet, arXiv 2107.11817', 'WideNet-L without mixture, 8192 hidden units', 'imagenet', 1, 75.8),
('WideNet, arXiv 2107.11817', 'ViT-B', 'cifar10', 0, 98.3),
('WideNet, arXiv 2107.11817', 'ViT-L', 'cifar10', 0, 98.2),
('WideNet, arXiv 2107.11817', 'ViT-MoE-B', 'cifar10', 0, 98.5),
('WideNet, arXiv 2107.11817', 'ViT-MoE-L', 'cifar10', 0, 98.5),
('WideNet, arXiv 2107.11817', 'WideNet-B', 'cifar10', 0, 98.4),
('WideNet, arXiv 2107.11817', 'WideNet-L', 'cifar10', 0, 98.8);
