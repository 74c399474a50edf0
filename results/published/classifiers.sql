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
INSERT INTO published_classifiers (source, method, dataset, scratch, accuracy, difference) VALUES
('EWA, arXiv 2308.06093', 'Dense ViT-B', 'cifar100', 0, 90.71, NULL),
('EWA, arXiv 2308.06093', 'EWA ViT-B', 'cifar100', 0, 91.42, 0.71),
('EWA, arXiv 2308.06093', 'EWA ViT-S', 'cifar100', 0, NULL, 0.45);
INSERT INTO published_classifiers (source, method, dataset, scratch, accuracy) VALUES
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
