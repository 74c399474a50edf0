/* Inside the cache: finds the file of a split's images, and makes it where there is none that is up to date. */
#ifndef MTIL_DATASETS_CACHE_CACHE_DISK_H
#define MTIL_DATASETS_CACHE_CACHE_DISK_H

#include "datasets/cache/cache.h"
#include "datasets/cache/cache_file.h"

struct cache_disk {
    char *folder;
    uint64_t limit;
    size_t threads;
    const struct log *log;
    struct cache_watcher watcher;
    bool gave_up; /* writing files, after a warning */
};

struct cache_key {
    const struct dataset *dataset;
    enum split split;
    int resolution;
};

/* file is of zeros where there is none: its images are generated, another process is writing it, or it cannot be
 * written, of which the first failure is warned about. Only being stopped is an error. The caller closes file and frees
 * path (NULL: there is no place for one). */
status cache_disk_open(struct cache_disk *disk, const struct cache_key *key, struct cache_file *file, char **path,
                       struct error *error);

#endif
