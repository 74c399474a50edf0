#include "harness/terminal/cache_progress.h"

static bool stopped(void *context)
{
    const struct cache_progress *shown = context;
    return stop_requested(shown->stop);
}

static void report(void *context, const char *dataset, size_t done, size_t total)
{
    const struct cache_progress *shown = context;
    progress_report(shown->progress,
                    &(struct progress_state){
                        .activity = "decode", .subject = dataset, .step = done, .steps = total, .images = done});
}

void cache_progress_begin(struct cache *cache, struct cache_progress *shown)
{
    cache_watch(cache, (struct cache_watcher){.stopped = stopped, .progress = report, .context = shown});
}

void cache_progress_end(struct cache *cache)
{
    cache_watch(cache, (struct cache_watcher){0});
}
