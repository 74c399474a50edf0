#include "datasets/cache/cache_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file_writer.h"

char *cache_folder_default(void)
{
    const char *given = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given != NULL && given[0] == '/') /* a relative path is to be ignored (XDG specification) */
        return path_format("%s/mtil", given);
    return home != NULL && home[0] != 0 ? path_format("%s/.cache/mtil", home) : NULL;
}

char *cache_folder_file(const char *folder, const struct cache_label *label, const char *list)
{
    enum { DIGITS = 16 };
    const char *split = label->split == SPLIT_TRAIN ? "train" : "test";
    if (label->resolution == 0)
        return path_format("%s/%s-%s-whole-%.*s" CACHE_FILE_ENDING, folder, label->dataset, split, DIGITS, list);
    return path_format("%s/%s-%s-%u-%.*s" CACHE_FILE_ENDING, folder, label->dataset, split, label->resolution, DIGITS,
                       list);
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), end = strlen(ending);
    return length > end && strcmp(name + length - end, ending) == 0;
}

/* False: the file is not the cache's, or gone. */
static bool describe(struct cache_item *item)
{
    struct stat information;
    bool unfinished = ends_with(item->path, CACHE_FILE_ENDING CACHE_FILE_UNFINISHED);
    if ((!unfinished && !ends_with(item->path, CACHE_FILE_ENDING)) || stat(item->path, &information) != 0 ||
        !S_ISREG(information.st_mode))
        return false;
    item->bytes = (uint64_t)information.st_blocks * 512;
    item->used = information.st_mtime;
    item->state = unfinished ? CACHE_UNFINISHED : CACHE_COMPLETE;
    if (!unfinished && cache_file_describe(item->path, &item->label, &item->images, NULL) != OK)
        item->state = CACHE_BROKEN;
    return true;
}

status cache_folder_list(struct cache_listing *listing, const char *folder, struct error *error)
{
    struct directory directory;
    *listing = (struct cache_listing){0};
    if (!file_exists(folder))
        return OK;
    TRY(directory_list(&directory, folder, error));
    listing->files = xcalloc(directory.count + 1, sizeof *listing->files);
    for (size_t i = 0; i < directory.count; i++) {
        struct cache_item item = {.path = path_format("%s/%s", folder, directory.names[i])};
        if (describe(&item))
            listing->files[listing->count++] = item;
        else
            free(item.path);
    }
    directory_free(&directory);
    return OK;
}

void cache_listing_free(struct cache_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->files[i].path);
    free(listing->files);
    *listing = (struct cache_listing){0};
}

/* Unless it is being written. */
static bool remove_left_over(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    bool removed = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0 && unlink(path) == 0;
    if (file >= 0)
        close(file);
    return removed;
}

status cache_folder_available(const char *folder, const char *path, uint64_t limit, uint64_t *available,
                              struct error *error)
{
    struct cache_listing listing;
    struct statvfs disk;
    uint64_t taken = 0;
    TRY(cache_folder_list(&listing, folder, error));
    temporary_clear(folder);
    for (size_t i = 0; i < listing.count; i++) {
        const struct cache_item *item = &listing.files[i];
        bool gone = item->state == CACHE_UNFINISHED && remove_left_over(item->path);
        if (!gone && strncmp(item->path, path, strlen(path)) !=
                         0) /* both the file and its unfinished version can be made again */
            taken += item->bytes;
    }
    cache_listing_free(&listing);
    if (statvfs(folder, &disk) != 0)
        return error_errno(error, errno, "%s: cannot ask how much room there is", folder);
    uint64_t spare = (uint64_t)disk.f_bavail * disk.f_frsize / 10 * 9;
    *available = limit > taken ? limit - taken : 0;
    if (*available > spare)
        *available = spare;
    return OK;
}

static bool is_to_go(const struct cache_item *item, const char *root)
{
    if (item->state == CACHE_UNFINISHED)
        return root == NULL && remove_left_over(item->path);
    return root == NULL || strcmp(item->label.root, root) == 0;
}

status cache_folder_clear(struct cache_listing *removed, const char *folder, const char *root, struct error *error)
{
    struct cache_listing all;
    size_t gone = 0;
    TRY(cache_folder_list(&all, folder, error));
    char *resolved = root != NULL ? realpath(root, NULL) : NULL;
    status result = OK;
    for (size_t i = 0; i < all.count; i++) {
        struct cache_item item = all.files[i];
        if (result == OK && is_to_go(&item, resolved != NULL ? resolved : root)) {
            if (unlink(item.path) != 0 && errno != ENOENT)
                result = error_errno(error, errno, "%s: cannot be removed", item.path);
            else {
                all.files[gone++] = item;
                continue;
            }
        }
        free(item.path);
    }
    if (root == NULL)
        temporary_clear(folder);
    free(resolved);
    all.count = gone;
    *removed = all;
    if (result != OK)
        cache_listing_free(removed);
    return result;
}
