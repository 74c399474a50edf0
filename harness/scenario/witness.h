/* A witness of change: a digest of sizes, times and inodes of files, of one or of many. Two witnesses of the same thing are equal
 * unless it changed between them.
 *
 *     struct witness before, now;
 *     TRY(witness_of_file(&before, path, error));
 *     … the file is read …
 *     TRY(witness_of_file(&now, path, error));
 *     if (!witness_same(&before, &now)) …
 */
#pragma once

#include "core/digest.h"
#include "datasets/dataset.h"

struct witness {
    char digest[DIGEST_SIZE]; /* "": there is nothing that could change */
};

/* Of a file; of the index of weights and all its shards together. */
status witness_of_file(struct witness *witness, const char *path, struct error *error);

/* Of the images of a split. Samples of a larger file are in memory, so nothing changes. */
status witness_of_images(struct witness *witness, const struct dataset *dataset, enum split split, struct error *error);

/* Of the images below a folder. */
status witness_of_folder(struct witness *witness, const char *path, struct error *error);

bool witness_same(const struct witness *a, const struct witness *b);
