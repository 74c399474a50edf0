/* All datasets, and their published sizes. To add one, copy toy.c and add a line. */
#include <string.h>

#include "core/text.h"
#include "datasets/readers/reader.h"

static const struct dataset_reader *const readers[] = {
    &dataset_aircraft,   &dataset_caltech101,    &dataset_cifar10, &dataset_cifar100,      &dataset_dtd,
    &dataset_eurosat,    &dataset_flowers,       &dataset_folder,  &dataset_food,          &dataset_mnist,
    &dataset_oxford_pet, &dataset_stanford_cars, &dataset_sun397,  &dataset_tiny_imagenet, &dataset_toy,
};

const struct dataset_reader *const *dataset_readers(size_t *count)
{
    *count = sizeof readers / sizeof *readers;
    return readers;
}

REGISTRY_FIND(dataset_reader, struct dataset_reader, readers, "datasets", "dataset")

/* torchvision: the archives' own lists, or 80 % and the rest of all images (Caltech101 without its background folder:
 * 8,677, EuroSAT 27,000, SUN397 108,754). coop: split_zhou_*.json (Zhou et al., Learning to Prompt for Vision-Language
 * Models, table of datasets), its validation images left aside; its Caltech101 has no "Faces_easy". */
static const struct dataset_published sizes[] = {
    {"aircraft", "torchvision", 100, 3334, 3333},   {"aircraft", "coop", 100, 3334, 3333},
    {"caltech101", "torchvision", 101, 6941, 1736}, {"caltech101", "coop", 100, 4128, 2465},
    {"cifar10", "torchvision", 10, 50000, 10000},   {"cifar100", "torchvision", 100, 50000, 10000},
    {"dtd", "torchvision", 47, 1880, 1880},         {"dtd", "coop", 47, 2820, 1692},
    {"eurosat", "torchvision", 10, 21600, 5400},    {"eurosat", "coop", 10, 13500, 8100},
    {"flowers", "torchvision", 102, 1020, 6149},    {"flowers", "coop", 102, 4093, 2463},
    {"food", "torchvision", 101, 75750, 25250},     {"food", "coop", 101, 50500, 30300},
    {"mnist", "torchvision", 10, 60000, 10000},     {"oxford_pet", "torchvision", 37, 3680, 3669},
    {"oxford_pet", "coop", 37, 2944, 3669},         {"stanford_cars", "torchvision", 196, 8144, 8041},
    {"stanford_cars", "coop", 196, 6509, 8041},     {"sun397", "torchvision", 397, 87003, 21751},
    {"sun397", "coop", 397, 15880, 19850},          {"tiny_imagenet", "torchvision", 200, 100000, 10000},
};

const struct dataset_published *dataset_published_find(const char *reader, const char *split)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(sizes[i].reader, reader) == 0 && strcmp(sizes[i].split, split) == 0)
            return &sizes[i];
    return NULL;
}
