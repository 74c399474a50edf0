/* list_items ROOT DATASET: a line "part label name" per item of a dataset, in order, for check_torchvision.py. */
#include <stdio.h>
#include <stdlib.h>

#include "datasets/dataset.h"

int main(int argc, char **argv)
{
    struct dataset *dataset;
    struct error error;
    if (argc != 3 || dataset_open(&dataset, argv[2], argv[1], NULL, NULL, &error) != OK) {
        fprintf(stderr, "%s\n", argc != 3 ? "list_items ROOT DATASET" : error.message);
        return 1;
    }
    for (int part = 0; part < SPLITS; part++)
        for (size_t i = 0; i < dataset_size(dataset, (enum split)part); i++) {
            char *name = dataset_item_name(dataset, (enum split)part, i);
            printf("%d %d %s\n", part, dataset_label(dataset, (enum split)part, i), name);
            free(name);
        }
    dataset_close(dataset);
    return 0;
}
