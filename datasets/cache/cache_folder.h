/* The cache folder: its path, its files, and its free space.
 *
 *     char *folder = cache_folder_default();                             // "/home/ada/.cache/mtil"
 *     struct cache_listing listing;
 *     TRY(cache_folder_list(&listing, folder, error));
 *     for (size_t i = 0; i < listing.count; i++) … listing.files[i].bytes …
 *     cache_listing_free(&listing);
 */
#pragma once

#include <time.h>

#include "datasets/cache/cache_file.h"

enum cache_state { CACHE_COMPLETE, CACHE_BROKEN, CACHE_UNFINISHED };

struct cache_item {
    char *path;
    enum cache_state state;
    struct cache_label label; /* of a complete file; otherwise zeros */
    size_t images;
    uint64_t bytes;
    time_t used; /* last opened by a run */
};

struct cache_listing {
    size_t count;
    struct cache_item *files; /* by name */
};

/* $XDG_CACHE_HOME/mtil, or $HOME/.cache/mtil. The caller frees; NULL when neither is set. */
char *cache_folder_default(void);

/* The file of a split's images. The caller frees. */
char *cache_folder_file(const char *folder, const struct cache_label *label, const char *list);

/* A missing folder counts as empty; foreign files are left out. */
status cache_folder_list(struct cache_listing *listing, const char *folder, struct error *error);
void cache_listing_free(struct cache_listing *listing);

/* The size limit of the file path in bytes: limit minus the folder's other files, and at most nine tenths of the
 * free disk space. Leftovers of dead writers are removed first. */
status cache_folder_available(const char *folder, const char *path, uint64_t limit, uint64_t *available,
                              struct error *error);

/* Removes the files made from datasets below root (NULL: all, and unfinished ones). Runs that use one continue; one
 * that is being written stays. removed lists the removed files. */
status cache_folder_clear(struct cache_listing *removed, const char *folder, const char *root, struct error *error);
