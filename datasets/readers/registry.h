/* Internal: the readers, one per file, listed by registry.c. */
#pragma once

#include "datasets/dataset.h"

extern const struct dataset_reader dataset_aircraft, dataset_caltech101, dataset_cifar10, dataset_cifar100, dataset_dtd,
    dataset_eurosat, dataset_flowers, dataset_folder, dataset_food, dataset_mnist, dataset_oxford_pet,
    dataset_stanford_cars, dataset_sun397, dataset_tiny_imagenet, dataset_toy;
