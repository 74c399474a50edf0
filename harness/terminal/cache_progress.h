/* Progress while images are decoded into a cache file, and stopping it.
 *
 *     struct cache_progress decoding = {progress, stop};
 *     cache_progress_begin(data->cache, &decoding);             // decoding lives until …
 *     cache_progress_end(data->cache);
 */
#pragma once

#include "datasets/cache/cache.h"
#include "harness/terminal/progress.h"
#include "harness/terminal/stop.h"

struct cache_progress {
    struct progress *progress; /* either may be NULL */
    const struct stop *stop;
};

void cache_progress_begin(struct cache *cache, struct cache_progress *shown);
void cache_progress_end(struct cache *cache);
