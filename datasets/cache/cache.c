#include "datasets/cache/cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/threads.h"
#include "datasets/cache/cache_file.h"

struct kept {
    int width, height;
    uint8_t pixels[];
};

struct cache_key {
    const struct dataset *dataset;
    enum split split;
    int resolution;
};

struct cache_part {
    struct cache *cache;
    struct cache_key of;
    size_t count, users;
    _Atomic(struct kept *) *kept; /* [count]; NULL unless in memory */
    struct cache_file file;       /* empty: none, or not yet */
    char *path;
    atomic_bool damaged;
    struct cache_part *next;
};

struct cache {
    enum cache_kind kind;
    atomic_size_t left; /* of memory_limit; with memory_spare: of the portions that were granted */
    uint64_t spare;
    pthread_mutex_t granting; /* ungranted */
    size_t ungranted;         /* of memory_limit */
    char *folder;             /* of files */
    uint64_t disk_limit;
    size_t threads;
    const struct log *log;
    struct cache_watcher watcher;
    bool gave_up;            /* no more files are written, after a warning */
    pthread_mutex_t opening; /* parts and their users: ranks open loaders at the same time */
    struct cache_part *parts;
};

void cache_settings_spare(struct cache_settings *settings, uint64_t available)
{
    settings->memory_spare = available - available / 2;
    settings->memory_limit = available > 0 ? SIZE_MAX : 0;
}

struct cache_settings cache_settings_of(const struct options *options)
{
    int64_t megabytes = options_integer(options, "cache_megabytes");
    struct cache_settings settings = {.kind = (enum cache_kind)options_choice(options, "cache"),
                                      .folder = options_text(options, "cache_folder"),
                                      .memory_limit = (uint64_t)megabytes << 20,
                                      .disk_limit = (uint64_t)options_integer(options, "cache_disk_megabytes") << 20};
    if (megabytes == OPTION_WORD)
        cache_settings_spare(&settings, memory_available(""));
    return settings;
}

status cache_create(struct cache **result, const struct cache_settings *settings, struct error *error)
{
    struct cache *cache = xcalloc(1, sizeof *cache);
    *result = NULL;
    cache->kind = settings->kind;
    size_t limit = settings->memory_limit < SIZE_MAX ? (size_t)settings->memory_limit : SIZE_MAX;
    cache->spare = settings->memory_spare;
    cache->ungranted = cache->spare > 0 ? limit : 0;
    atomic_init(&cache->left, limit - cache->ungranted);
    cache->disk_limit = settings->disk_limit;
    cache->threads = settings->threads;
    cache->log = settings->log;
    if (settings->kind == CACHE_DISK)
        cache->folder = settings->folder != NULL ? xstrdup(settings->folder) : cache_folder_default();
    if (settings->kind == CACHE_DISK && cache->folder == NULL) {
        free(cache);
        return error_set(error, ERROR_ARGUMENT, "cache: neither XDG_CACHE_HOME nor HOME is set; set run.cache_folder");
    }
    pthread_mutex_init(&cache->opening, NULL);
    pthread_mutex_init(&cache->granting, NULL);
    *result = cache;
    return OK;
}

void cache_watch(struct cache *cache, struct cache_watcher watcher)
{
    if (cache != NULL)
        cache->watcher = watcher;
}

/* --- In memory --- */

static bool take(struct cache *cache, size_t size)
{
    size_t left = atomic_load(&cache->left);
    while (left >= size)
        if (atomic_compare_exchange_weak(&cache->left, &left, left - size))
            return true;
    return false;
}

/* What is available is asked for again before every portion, because the run and other processes take memory, too. */
static bool grant(struct cache *cache)
{
    enum { PORTION = 64 << 20 };
    pthread_mutex_lock(&cache->granting);
    size_t portion = cache->ungranted < PORTION ? cache->ungranted : PORTION;
    bool granted = portion > 0 && memory_available("") > cache->spare + portion;
    cache->ungranted = granted ? cache->ungranted - portion : 0;
    atomic_fetch_add(&cache->left, granted ? portion : 0);
    pthread_mutex_unlock(&cache->granting);
    return granted;
}

static bool reserve(struct cache *cache, size_t size)
{
    bool taken = take(cache, size);
    while (!taken && grant(cache))
        taken = take(cache, size);
    return taken;
}

static size_t kept_size(int width, int height)
{
    return sizeof(struct kept) + (size_t)width * (size_t)height * 3;
}

/* If two threads add the same image, the first wins. */
void cache_keep(struct cache_part *part, size_t item, const struct image *image)
{
    size_t size = kept_size(image->width, image->height);
    struct kept *nothing = NULL;
    if (part == NULL || part->kept == NULL || !reserve(part->cache, size))
        return;
    struct kept *kept = malloc(size);
    if (kept != NULL) {
        kept->width = image->width;
        kept->height = image->height;
        memcpy(kept->pixels, image->pixels, size - sizeof *kept);
        if (atomic_compare_exchange_strong(&part->kept[item], &nothing, kept))
            return;
    }
    free(kept);
    atomic_fetch_add(&part->cache->left, size);
}

static void forget(struct cache_part *part)
{
    for (size_t i = 0; part->kept != NULL && i < part->count; i++) {
        OWNED struct kept *kept = atomic_load(&part->kept[i]);
        if (kept != NULL)
            atomic_fetch_add(&part->cache->left, kept_size(kept->width, kept->height));
    }
    free(part->kept);
}

/* --- In files --- */

/* A file being made; each job decodes an item. */
struct making {
    const struct cache_part *part;
    struct cache_writer writer;
    size_t first;
    pthread_mutex_t mutex;
    atomic_bool failed;
    struct error error; /* the first one */
};

/* Images that cannot be decoded are left out; decoding them later reports why. */
static status make_image(const struct making *making, size_t item, struct image *image)
{
    const struct cache_key *key = &making->part->of;
    SCOPED(image_free) struct image whole = {0};
    if (key->resolution == CACHE_WHOLE)
        return dataset_read(key->dataset, key->split, item, image, NULL, NULL);
    TRY(dataset_read(key->dataset, key->split, item, &whole, NULL, NULL));
    TRY(image_create(image, key->resolution, key->resolution, NULL));
    return image_evaluation_crop(&whole, key->resolution, image->pixels, NULL);
}

static void make_item(void *context, size_t job, size_t worker)
{
    struct making *making = context;
    SCOPED(image_free) struct image image = {0};
    struct error error;
    size_t item = making->first + job;
    if (atomic_load(&making->failed) || stop_requested(making->part->cache->watcher.stop) ||
        make_image(making, item, &image) != OK)
        return;
    if (cache_writer_add(&making->writer, item, &image, &error) != OK) {
        pthread_mutex_lock(&making->mutex);
        if (!atomic_exchange(&making->failed, true))
            making->error = error;
        pthread_mutex_unlock(&making->mutex);
    }
}

static status make_items(struct making *making, struct error *error)
{
    enum { EACH = 32 }; /* images per thread between two reports */
    const struct cache_watcher *watcher = &making->part->cache->watcher;
    const char *name = dataset_name(making->part->of.dataset);
    size_t count = making->part->count;
    SCOPED(threads_destroy_at) struct threads *threads = NULL;
    TRY(threads_create(&threads, making->part->cache->threads, error));
    for (size_t chunk; making->first < count; making->first += chunk) {
        size_t left = count - making->first, most = EACH * threads_count(threads);
        chunk = left < most ? left : most;
        threads_run(threads, chunk, make_item, making);
        if (atomic_load(&making->failed)) {
            *error = making->error;
            return error->code;
        }
        if (stop_requested(watcher->stop))
            return error_set(error, ERROR_STOPPED, "stopped while the images of %s were decoded for the cache", name);
        if (watcher->progress != NULL)
            watcher->progress(watcher->context, name, making->first + chunk, count);
    }
    return OK;
}

static status write_file(struct cache_part *part, const struct cache_label *label, uint64_t available,
                         struct error *error)
{
    struct making making = {.part = part};
    TRY(cache_writer_open(&making.writer, part->path, label, part->count, available, error));
    if (cache_file_open(&part->file, part->path, label, NULL) == OK) { /* another process was faster */
        cache_writer_abandon(&making.writer);
        return OK;
    }
    pthread_mutex_init(&making.mutex, NULL);
    status result = make_items(&making, error);
    pthread_mutex_destroy(&making.mutex);
    if (result != OK) {
        cache_writer_abandon(&making.writer);
        return result;
    }
    TRY(cache_writer_finish(&making.writer, error));
    return cache_file_open(&part->file, part->path, label, error);
}

static status make_file(struct cache_part *part, const struct cache_label *label, struct error *error)
{
    const struct cache *cache = part->cache;
    uint64_t available, side = (uint64_t)part->of.resolution, crops = side * side * 3 * part->count;
    TRY(directory_create(cache->folder, error));
    TRY(cache_folder_available(cache->folder, part->path, cache->disk_limit, &available, error));
    if (crops > available)
        return error_set(error, ERROR_IO, "%s: needs %llu MB, but the disk and the cache's limit leave %llu MB",
                         part->path, (unsigned long long)(crops / 1000000), (unsigned long long)(available / 1000000));
    return write_file(part, label, available, error);
}

/* The part's path, and the label that says what its file is made from. */
static status find_place(struct cache_part *part, struct cache_label *label, struct error *error)
{
    const struct cache_key *key = &part->of;
    struct dataset_identity identity;
    *label = (struct cache_label){0};
    TRY(dataset_identify(key->dataset, key->split, &identity, error));
    OWNED char *root = realpath(dataset_root(key->dataset), NULL);
    strncpy(label->dataset, dataset_name(key->dataset), sizeof label->dataset - 1);
    strncpy(label->root, root != NULL ? root : dataset_root(key->dataset), sizeof label->root - 1);
    label->split = (uint32_t)key->split;
    label->resolution = (uint32_t)key->resolution;
    memcpy(label->content, identity.content, sizeof identity.content);
    strncpy(label->pixels, image_version(), sizeof label->pixels - 1);
    part->path = cache_folder_file(part->cache->folder, label, identity.list);
    return OK;
}

/* There is no file if the images are generated, another process is writing it, or it cannot be written; the first such
 * failure is a warning. Only a stop is an error. */
static status open_or_make(struct cache_part *part, struct error *error)
{
    struct cache *cache = part->cache;
    struct cache_label label;
    struct error problem;
    if (find_place(part, &label, &problem) != OK) {
        log_debug(cache->log, "not cached: %s", problem.message);
        return OK;
    }
    if (cache_file_open(&part->file, part->path, &label, &problem) == OK) {
        utimensat(AT_FDCWD, part->path, NULL, 0); /* time of last use; failing in a read-only folder is fine */
        return OK;
    }
    if (problem.code == ERROR_FORMAT)
        log_info(cache->log, "%s; it is written again", problem.message);
    if (cache->gave_up)
        return OK;
    status result = make_file(part, &label, &problem);
    if (result == ERROR_STOPPED)
        return error_set(error, ERROR_STOPPED, "%s", problem.message);
    if (result == ERROR_BUSY) {
        log_info(cache->log, "%s; images are decoded here meanwhile", problem.message);
    } else if (result != OK) {
        cache->gave_up = true;
        log_warn(cache->log, "cache: %s; images are decoded every time instead", problem.message);
    }
    return OK;
}

/* Looks again for a damaged or missing file when the part is not in use. */
static status open_file(struct cache_part *part, struct error *error)
{
    if (part->users > 0 || (part->file.entries != NULL && !atomic_load(&part->damaged)))
        return OK;
    cache_file_close(&part->file);
    free(part->path);
    part->path = NULL;
    atomic_store(&part->damaged, false);
    return open_or_make(part, error);
}

/* --- Parts --- */

static void warn_of_damage(struct cache_part *part, size_t item)
{
    if (atomic_exchange(&part->damaged, true))
        return;
    unlink(part->path);
    log_warn(part->cache->log, "%s: image %zu is damaged; it is decoded now, and the file is written again next time",
             part->path, item);
}

static struct cache_part *find_part(const struct cache *cache, const struct cache_key *key)
{
    for (struct cache_part *part = cache->parts; part != NULL; part = part->next)
        if (part->of.dataset == key->dataset && part->of.split == key->split && part->of.resolution == key->resolution)
            return part;
    return NULL;
}

static void destroy_part(struct cache_part *part)
{
    forget(part);
    cache_file_close(&part->file);
    free(part->path);
    free(part);
}

static struct cache_part *add_part(struct cache *cache, const struct cache_key *key)
{
    size_t count = dataset_size(key->dataset, key->split);
    struct cache_part *part = xcalloc(1, sizeof *part);
    *part = (struct cache_part){.cache = cache,
                                .of = *key,
                                .count = count,
                                .kept = cache->kind == CACHE_MEMORY ? xcalloc(count + 1, sizeof *part->kept) : NULL,
                                .next = cache->parts};
    cache->parts = part;
    return part;
}

static status open_part(struct cache *cache, const struct cache_key *key, struct cache_part **result,
                        struct error *error)
{
    struct cache_part *part = find_part(cache, key);
    if (part == NULL)
        part = add_part(cache, key);
    if (cache->kind == CACHE_DISK)
        TRY(open_file(part, error));
    part->users++;
    *result = part;
    return OK;
}

status cache_open(struct cache *cache, const struct dataset *dataset, enum split split, int resolution,
                  struct cache_part **result, struct error *error)
{
    *result = NULL;
    if (cache == NULL || cache->kind == CACHE_NONE || (resolution == CACHE_WHOLE && !dataset_has_files(dataset, split)))
        return OK;
    pthread_mutex_lock(&cache->opening);
    status opened = open_part(cache, &(struct cache_key){dataset, split, resolution}, result, error);
    pthread_mutex_unlock(&cache->opening);
    return opened;
}

static void close_part(struct cache_part *part)
{
    if (--part->users > 0 || part->of.resolution != CACHE_WHOLE)
        return;
    struct cache_part **place = &part->cache->parts;
    while (*place != part)
        place = &(*place)->next;
    *place = part->next;
    destroy_part(part);
}

void cache_close(struct cache_part *part)
{
    if (part == NULL)
        return;
    struct cache *cache = part->cache;
    pthread_mutex_lock(&cache->opening);
    close_part(part);
    pthread_mutex_unlock(&cache->opening);
}

bool cache_find(struct cache_part *part, size_t item, struct image *image)
{
    if (part == NULL)
        return false;
    if (part->kept != NULL) {
        struct kept *kept = atomic_load(&part->kept[item]);
        if (kept != NULL)
            *image = (struct image){.pixels = kept->pixels, .width = kept->width, .height = kept->height};
        return kept != NULL;
    }
    enum cache_found found = part->file.entries != NULL ? cache_file_find(&part->file, item, image) : CACHE_ABSENT;
    if (found == CACHE_DAMAGED)
        warn_of_damage(part, item);
    return found == CACHE_FOUND;
}

bool cache_copy(struct cache_part *part, size_t item, uint8_t *pixels)
{
    struct image image;
    if (!cache_find(part, item, &image))
        return false;
    memcpy(pixels, image.pixels, (size_t)image.width * (size_t)image.height * 3);
    cache_release(part, &image);
    return true;
}

/* Images in memory are borrowed, images from a file are the caller's. */
void cache_release(struct cache_part *part, struct image *image)
{
    if (part->kept == NULL)
        image_free(image);
}

void cache_destroy(struct cache *cache)
{
    if (cache == NULL)
        return;
    while (cache->parts != NULL) {
        struct cache_part *part = cache->parts;
        cache->parts = part->next;
        destroy_part(part);
    }
    pthread_mutex_destroy(&cache->opening);
    pthread_mutex_destroy(&cache->granting);
    free(cache->folder);
    free(cache);
}
