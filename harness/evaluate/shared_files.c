#include "harness/evaluate/shared_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/digest.h"
#include "core/file.h"
#include "core/seen.h"
#include "core/text.h"
#include "harness/train/archive.h"

static char *copy_metadata(const struct archive *archive, const char *name)
{
    const char *value = archive_metadata(archive, name);
    return value != NULL ? xstrdup(value) : NULL;
}

static void describe_features(struct shared_file *file)
{
    struct archive *archive;
    int64_t images;
    if (archive_open(&archive, file->path, NULL) != OK)
        return;
    const char *count = archive_metadata(archive, "images");
    file->dataset = copy_metadata(archive, "dataset");
    file->root = copy_metadata(archive, "root");
    file->images = count != NULL && parse_integer(count, &images) && images > 0 ? (size_t)images : 0;
    archive_close(archive);
}

/* Files being written have more characters after the extension. */
static bool is_features(const char *name)
{
    const char *ending = strstr(name, SHARED_FILE_ENDING);
    return ending != NULL && strcmp(ending, SHARED_FILE_ENDING) == 0;
}

static void free_file(struct shared_file *file)
{
    free(file->path);
    free(file->dataset);
    free(file->root);
}

void shared_files_free(struct shared_files *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_file(&list->files[i]);
    free(list->files);
    *list = (struct shared_files){0};
}

static struct shared_file *add_file(struct shared_files *list, const char *folder, const char *name, const char *kind)
{
    struct stat information;
    GROW(list->files, list->count);
    struct shared_file *file = &list->files[list->count++];
    *file = (struct shared_file){.path = path_format("%s/%s", folder, name), .kind = kind};
    if (stat(file->path, &information) == 0) {
        file->bytes = (uint64_t)information.st_size;
        file->used = information.st_mtime;
    }
    return file;
}

/* A line for each place of what was seen; one for the file if it is damaged. */
static void add_seen(struct shared_files *list, const char *folder)
{
    struct seen_listing seen;
    if (seen_list(&seen, folder, NULL) != OK)
        add_file(list, folder, SEEN_FILE, "survey");
    for (size_t i = 0; i < seen.count; i++) {
        const struct seen_listed *place = &seen.places[i];
        bool digest = strcmp(place->kind, FILE_DIGEST_KIND) == 0;
        struct shared_file *file = add_file(list, folder, SEEN_FILE, digest ? FILE_DIGEST_KIND : "survey");
        file->dataset = digest ? NULL : xstrdup(place->kind);
        file->root = xstrdup(place->root);
        file->images = (size_t)place->records;
        file->bytes = (uint64_t)place->bytes;
    }
    seen_listing_free(&seen);
}

status shared_files_list(struct shared_files *list, const char *folder, struct error *error)
{
    struct directory names;
    *list = (struct shared_files){0};
    if (!file_exists(folder))
        return OK;
    TRY(directory_list(&names, folder, error));
    for (size_t i = 0; i < names.count; i++)
        if (is_features(names.names[i]))
            describe_features(add_file(list, folder, names.names[i], "features"));
    directory_free(&names);
    add_seen(list, folder);
    return OK;
}

status shared_files_clear(struct shared_files *removed, const char *folder, const char *root, struct error *error)
{
    size_t gone = 0;
    TRY(shared_files_list(removed, folder, error));
    char *resolved = root != NULL ? realpath(root, NULL) : NULL;
    status result = OK;
    for (size_t i = 0; i < removed->count; i++) {
        struct shared_file file = removed->files[i];
        const char *of = resolved != NULL ? resolved : root;
        bool goes = result == OK && (of == NULL || (file.root != NULL && strcmp(file.root, of) == 0));
        if (goes && strcmp(file.kind, "features") == 0 && unlink(file.path) != 0 && errno != ENOENT) {
            result = error_errno(error, errno, "%s: cannot be removed", file.path);
            goes = false;
        }
        if (goes)
            removed->files[gone++] = file;
        else
            free_file(&file);
    }
    NEXT(result, seen_forget(folder, resolved != NULL ? resolved : root, error));
    free(resolved);
    removed->count = gone;
    if (result != OK)
        shared_files_free(removed);
    return result;
}
