/* Internal: finds the file of a split's images, and makes it if there is none that is up to date. */
#pragma once

#include "datasets/cache/cache.h"
#include "datasets/cache/cache_file.h"

struct cache_disk {
    char *folder;
    uint64_t limit;
    size_t threads;
    const struct log *log;
    struct cache_watcher watcher;
    bool gave_up; /* no more files are written, after a warning */
};

struct cache_key {
    const struct dataset *dataset;
    enum split split;
    int resolution;
};

/* file is zeros if there is none: the images are generated, another process is writing it, or it cannot be written;
 * the first such failure is a warning. Only a stop is an error. The caller closes file and frees path (NULL: no
 * place for one). */
status cache_disk_open(struct cache_disk *disk, const struct cache_key *key, struct cache_file *file, char **path,
                       struct error *error);
