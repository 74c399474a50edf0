/* All datasets. To add one, copy toy.c and add a line. */
#include <string.h>

#include "core/text.h"
#include "datasets/readers/registry.h"

static const struct dataset_reader *const readers[] = {
    &dataset_aircraft,   &dataset_caltech101,    &dataset_cifar10, &dataset_cifar100,      &dataset_dtd,
    &dataset_eurosat,    &dataset_flowers,       &dataset_folder,  &dataset_food,          &dataset_mnist,
    &dataset_oxford_pet, &dataset_stanford_cars, &dataset_sun397,  &dataset_tiny_imagenet, &dataset_toy,
};
enum { READERS = sizeof readers / sizeof *readers };

const struct dataset_reader *const *dataset_readers(size_t *count)
{
    *count = READERS;
    return readers;
}

status dataset_reader_find(const struct dataset_reader **reader, const char *name, struct error *error)
{
    const char *names[READERS];
    for (size_t i = 0; i < READERS; i++) {
        names[i] = readers[i]->name;
        if (strcmp(names[i], name) == 0) {
            *reader = readers[i];
            return OK;
        }
    }
    const char *nearest = nearest_word(name, names, READERS);
    if (nearest != NULL)
        return error_set(error, ERROR_ARGUMENT, "there is no dataset \"%s\"; did you mean \"%s\"?", name, nearest);
    struct text all = {0};
    for (size_t i = 0; i < READERS; i++)
        text_add(&all, "%s%s", i > 0 ? ", " : "", names[i]);
    error_set(error, ERROR_ARGUMENT, "there is no dataset \"%s\"; known are %s", name, all.data);
    text_free(&all);
    return ERROR_ARGUMENT;
}
