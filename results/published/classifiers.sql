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
