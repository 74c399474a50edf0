/* A dataset named on a command line: its name, root and split.
 *
 *     struct dataset_choice choice = {.name = "dtd", .root = "/data", .split = "coop"};
 *     TRY(dataset_choice_open(&choice, log, &dataset, error));
 */
#pragma once

#include "datasets/dataset.h"

struct dataset_choice {
    const char *name, *root;
    const char *split; /* "torchvision" or "coop"; NULL: the reader's default */
    const char *path;  /* for readers whose folder is an option; NULL: their default */
    bool skip_missing; /* leave out listed images that are missing */
};

#define OPTION_PATH OPTION(TEXT, "path", NULL, "folder of the dataset \"folder\", below the root")

/* dataset_open with the options of the choice. The caller closes the dataset. */
status dataset_choice_open(const struct dataset_choice *choice, const struct log *log, struct dataset **dataset,
                           struct error *error);
