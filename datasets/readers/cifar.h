/* Internal: shared by cifar10.c and cifar100.c. */
#ifndef MTIL_DATASETS_READERS_CIFAR_H
#define MTIL_DATASETS_READERS_CIFAR_H

#include "datasets/readers/reader.h"

enum { CIFAR_FILES = 6 };

struct cifar_layout {
    const char *python, *binary;           /* the folders of the two versions */
    const char *python_names, *python_key; /* file and key of the class names */
    const char *binary_names;              /* file of the class names, one a line */
    const char *label_key;                 /* of the python version's labels */
    int label_bytes;                       /* of a binary record */
    const char *python_files[SPLITS][CIFAR_FILES], *binary_files[SPLITS][CIFAR_FILES]; /* end with NULL */
};

extern const struct option cifar_options[];

status cifar_open(struct dataset *dataset, const struct cifar_layout *layout, const struct options *options,
                  struct error *error);

#endif
