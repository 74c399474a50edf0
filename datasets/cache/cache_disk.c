/* Finds the file of a split's images, and makes it if there is none that is up to date. */
#include "datasets/cache/cache_disk.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/threads.h"
#include "datasets/cache/cache_folder.h"

/* A file being made; each job decodes an item. */
struct making {
    struct cache_disk *disk;
    const struct cache_key *key;
    struct cache_writer writer;
    size_t first;
    pthread_mutex_t mutex;
    atomic_bool failed, stopped;
    struct error error; /* the first one */
};

/* Images that cannot be decoded are left out; decoding them later reports why. */
static status make_image(const struct making *making, size_t item, struct image *image)
{
    const struct cache_key *key = making->key;
    struct image whole, crop;
    TRY(dataset_read(key->dataset, key->split, item, &whole, NULL, NULL));
    if (key->resolution == CACHE_WHOLE) {
        *image = whole;
        return OK;
    }
    status result = image_create(&crop, key->resolution, key->resolution, NULL);
    NEXT(result, image_evaluation_crop(&whole, key->resolution, crop.pixels, NULL));
    image_free(&whole);
    if (result == OK)
        *image = crop;
    else
        image_free(&crop);
    return result;
}

static void look_at_watcher(struct making *making)
{
    const struct cache_watcher *watcher = &making->disk->watcher;
    if (watcher->stopped != NULL && watcher->stopped(watcher->context))
        atomic_store(&making->stopped, true);
}

static void make_item(void *context, size_t job, size_t worker)
{
    struct making *making = context;
    struct image image;
    struct error error;
    size_t item = making->first + job;
    if (worker == 0) /* the caller's thread, which alone may poll */
        look_at_watcher(making);
    if (atomic_load(&making->failed) || atomic_load(&making->stopped) || make_image(making, item, &image) != OK)
        return;
    if (cache_writer_add(&making->writer, item, &image, &error) != OK) {
        pthread_mutex_lock(&making->mutex);
        if (!atomic_exchange(&making->failed, true))
            making->error = error;
        pthread_mutex_unlock(&making->mutex);
    }
    image_free(&image);
}

static status make_items(struct making *making, struct error *error)
{
    enum { EACH = 32 }; /* images per thread between two reports */
    const struct cache_watcher *watcher = &making->disk->watcher;
    const char *name = dataset_name(making->key->dataset);
    size_t count = dataset_size(making->key->dataset, making->key->split);
    struct threads *threads;
    TRY(threads_create(&threads, making->disk->threads, error));
    status result = OK;
    for (size_t chunk; result == OK && making->first < count; making->first += chunk) {
        size_t left = count - making->first, most = EACH * threads_count(threads);
        chunk = left < most ? left : most;
        threads_run(threads, chunk, make_item, making);
        if (atomic_load(&making->failed)) {
            *error = making->error;
            result = error->code;
        } else if (atomic_load(&making->stopped)) {
            result = error_set(error, ERROR_STOPPED, "stopped while the images of %s were decoded for the cache", name);
        } else if (watcher->progress != NULL) {
            watcher->progress(watcher->context, name, making->first + chunk, count);
        }
    }
    threads_destroy(threads);
    return result;
}

/* The path of a file, and the label that says what it was made from. */
struct place {
    char *path;
    struct cache_label label;
};

static status write_file(struct cache_disk *disk, const struct cache_key *key, const struct place *place,
                         uint64_t available, struct cache_file *file, struct error *error)
{
    struct making making = {.disk = disk, .key = key};
    size_t count = dataset_size(key->dataset, key->split);
    TRY(cache_writer_open(&making.writer, place->path, &place->label, count, available, error));
    if (cache_file_open(file, place->path, &place->label, NULL) == OK) { /* another process was faster */
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
    return cache_file_open(file, place->path, &place->label, error);
}

static status make_file(struct cache_disk *disk, const struct cache_key *key, const struct place *place,
                        struct cache_file *file, struct error *error)
{
    uint64_t available, side = (uint64_t)key->resolution,
                        crops = side * side * 3 * dataset_size(key->dataset, key->split);
    TRY(directory_create(disk->folder, error));
    TRY(cache_folder_available(disk->folder, place->path, disk->limit, &available, error));
    if (crops > available)
        return error_set(error, ERROR_IO, "%s: needs %llu MB, but the disk and the cache's limit leave %llu MB",
                         place->path, (unsigned long long)(crops / 1000000), (unsigned long long)(available / 1000000));
    return write_file(disk, key, place, available, file, error);
}

static status find_place(const struct cache_disk *disk, const struct cache_key *key, struct place *place,
                         struct error *error)
{
    struct dataset_identity identity;
    struct cache_label *label = &place->label;
    *place = (struct place){0};
    TRY(dataset_identify(key->dataset, key->split, &identity, error));
    char *root = realpath(dataset_root(key->dataset), NULL);
    strncpy(label->dataset, dataset_name(key->dataset), sizeof label->dataset - 1);
    strncpy(label->root, root != NULL ? root : dataset_root(key->dataset), sizeof label->root - 1);
    label->split = (uint32_t)key->split;
    label->resolution = (uint32_t)key->resolution;
    memcpy(label->content, identity.content, sizeof identity.content);
    strncpy(label->pixels, image_version(), sizeof label->pixels - 1);
    free(root);
    place->path = cache_folder_file(disk->folder, label, identity.list);
    return OK;
}

static status open_or_make(struct cache_disk *disk, const struct cache_key *key, const struct place *place,
                           struct cache_file *file, struct error *error)
{
    struct error problem;
    if (cache_file_open(file, place->path, &place->label, &problem) == OK) {
        utimensat(AT_FDCWD, place->path, NULL, 0); /* time of last use; failing in a read-only folder is fine */
        return OK;
    }
    if (problem.code == ERROR_FORMAT)
        log_info(disk->log, "%s; it is written again", problem.message);
    if (disk->gave_up)
        return OK;
    status result = make_file(disk, key, place, file, &problem);
    if (result == ERROR_STOPPED)
        return error_set(error, ERROR_STOPPED, "%s", problem.message);
    if (result == ERROR_BUSY) {
        log_info(disk->log, "%s; images are decoded here meanwhile", problem.message);
    } else if (result != OK) {
        disk->gave_up = true;
        log_warn(disk->log, "cache: %s; images are decoded every time instead", problem.message);
    }
    return OK;
}

status cache_disk_open(struct cache_disk *disk, const struct cache_key *key, struct cache_file *file, char **path,
                       struct error *error)
{
    struct place place;
    struct error problem;
    *file = (struct cache_file){0};
    *path = NULL;
    if (find_place(disk, key, &place, &problem) != OK) {
        log_debug(disk->log, "not cached: %s", problem.message);
        return OK;
    }
    *path = place.path;
    return open_or_make(disk, key, &place, file, error);
}
