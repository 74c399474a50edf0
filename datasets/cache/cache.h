/* Caches decoded images, in memory or in files that later runs read.
 *
 *     struct cache *cache;
 *     TRY(cache_create(&cache, &(struct cache_settings){.kind = CACHE_MEMORY, .memory_limit = 1 << 30}, error));
 *     struct loader_settings settings = {.dataset = dataset, .cache = cache, …};      // loader.h does the rest
 *     …
 *     cache_destroy(cache);                              // after the loaders, before the datasets
 *
 * Loaders give the same bytes with and without a cache. Evaluation caches crops, training whole images; images that are
 * not files (CIFAR, MNIST) are not cached whole, because they need no decoding.
 *
 * CACHE_MEMORY keeps images as they are read until a limit of memory is reached, crops until cache_destroy, whole images as
 * long as a loader uses them. CACHE_DISK decodes a whole split in parallel when it is first needed, into one file per
 * dataset, split and resolution (cache_file.h), which all processes read. The file records the items, the sizes, times
 * and inodes of their files and the version of the decoders, and is made again when they differ. While one process
 * writes it, the others decode for themselves. If files cannot be written (full disk, disk_limit reached, read-only
 * folder), there is one warning and images are decoded every time.
 */
#pragma once

#include <stdbool.h>

#include "core/threads.h"
#include "datasets/dataset.h"

enum cache_kind { CACHE_NONE, CACHE_MEMORY, CACHE_DISK };

struct cache_settings {
    enum cache_kind kind;
    const char *folder; /* of the files; NULL: $XDG_CACHE_HOME/mtil or ~/.cache/mtil */
    uint64_t memory_limit;
    uint64_t memory_spare; /* no more is kept once less is available (memory.h); 0: whatever is available */
    uint64_t disk_limit;   /* of all files in the folder; nine tenths of the free disk is a limit too */
    size_t threads;        /* threads that decode for a file; 0: one per core */
    const struct log *log;
};

/* Called while a file is made, from the thread that creates the loader. */
struct cache_watcher {
    const struct stop *stop; /* loader_create then fails with ERROR_STOPPED and the file is discarded; NULL: never */
    void (*progress)(void *context, const char *dataset, size_t done, size_t total);
    void *context;
};

struct cache;

/* Option table entries for owners of a cache, and their values as settings; the caller sets log. */
#define CACHE_OPTIONS                                                                                                  \
    OPTION_ONE_OF("cache", "none|memory|disk", "memory",                                                               \
                  "place of the cache of decoded images; results do not depend on it", .incidental = "*"),             \
        OPTION_NUMBER(INTEGER, "cache_megabytes", 0, 1e7, "auto",                                                      \
                      "limit of the cache in memory, with cache: memory; auto: half of what is available at the "      \
                      "start stays available",                                                                         \
                      .choices = "auto", .incidental = "*"),                                                           \
        OPTION_NUMBER(INTEGER, "cache_disk_megabytes", 0, 1e9, "102400",                                               \
                      "limit of all cache files together, with cache: disk", .incidental = "*"),                       \
        OPTION(TEXT, "cache_folder", NULL, "folder of the cache files; unset: $XDG_CACHE_HOME/mtil or ~/.cache/mtil",  \
               .incidental = "*")
struct cache_settings cache_settings_of(const struct options *options);
/* cache_megabytes: auto. `available`: as memory_available says; where it is unknown, nothing is kept. */
void cache_settings_spare(struct cache_settings *settings, uint64_t available);

/* settings' strings and log are borrowed until cache_destroy. */
status cache_create(struct cache **cache, const struct cache_settings *settings, struct error *error);
void cache_watch(struct cache *cache, struct cache_watcher watcher); /* cache may be NULL */
void cache_destroy(struct cache *cache);                             /* NULL is allowed */

/* --- For the loader --- */

enum { CACHE_WHOLE = 0 }; /* in place of a resolution: whole images */

struct cache_part; /* the images of a split, whole or at a resolution */

/* *part is NULL if nothing is cached. One thread opens and closes parts, any thread finds and adds images. */
status cache_open(struct cache *cache, const struct dataset *dataset, enum split split, int resolution,
                  struct cache_part **part, struct error *error);
void cache_close(struct cache_part *part); /* NULL is allowed */

/* The caller releases the image with cache_release before the part is closed, and does not change its pixels. */
bool cache_find(struct cache_part *part, size_t item, struct image *image);
void cache_release(struct cache_part *part, struct image *image);

/* Copies a crop of the part's resolution to pixels. */
bool cache_copy(struct cache_part *part, size_t item, uint8_t *pixels);

/* Copies the image if there is room for it. */
void cache_keep(struct cache_part *part, size_t item, const struct image *image);
