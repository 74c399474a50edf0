/* Files that get their names together, when all of them are complete.
 *
 *     struct file_group group;
 *     status result = file_group_begin(&group, "csv", error);
 *     NEXT(result, file_group_add(&group, "runs.csv", data, size, error));        // or "mini/seed1/runs.csv"
 *     NEXT(result, file_group_commit(&group, error));                             // csv/runs.csv
 *     file_group_abandon(&group);                                                 // removes what has no name yet
 *
 * Until then they lie in a temporary folder (core/temporary.h) inside the one that they are meant for.
 */
#pragma once

#include <stddef.h>

#include "core/temporary.h"

struct file_group {
    char *folder;
    struct temporary temporary;
    char **paths; /* [count] the final ones; that of the n-th lies in the temporary folder as n */
    size_t count;
};

/* Makes the folder where it is missing. To be abandoned after a failure too, like the next two. */
status file_group_begin(struct file_group *group, const char *folder, struct error *error);

/* name: below the folder, in folders that commit makes. Two of one name are the caller's fault. */
status file_group_add(struct file_group *group, const char *name, const void *data, size_t size, struct error *error);

/* Waits until all are on the disk, then renames one after the other, the one that was added last first, over what has their names. A
 * failure leaves those in place that came before: a second call of the whole is the way on. */
status file_group_commit(struct file_group *group, struct error *error);
void file_group_abandon(struct file_group *group); /* harmless after commit */
