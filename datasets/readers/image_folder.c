/* Folders of class folders of images: found by their content, and listed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"
#include "datasets/readers/reader.h"

/* --- listed ------------------------------------------------------------------------------------------------------- */

/* "a/b.png" of "./a/b.png". */
static const char *without_dot(const char *file)
{
    return strncmp(file, "./", 2) == 0 ? file + 2 : file;
}

static status add_file(struct dataset *dataset, struct dataset_items *items, size_t label, const char *file,
                       struct error *error)
{
    char path[DATASET_PATH];
    bool image;
    TRY(dataset_path(dataset, file, path, error));
    TRY(image_file_recognize(&image, path, error));
    if (image)
        return dataset_add_file(dataset, items, label, error, "%s", file);
    strings_add(&dataset->left_out, file, strlen(file));
    return OK;
}

status image_folder_add(struct dataset *dataset, const char *folder, size_t label, struct dataset_items *items,
                        struct error *error)
{
    char path[DATASET_PATH];
    SCOPED(strings_free) struct strings files = {0};
    TRY(dataset_path(dataset, "", path, error));
    path[strlen(path) - 1] = 0; /* no slash at the end: names are relative to it */
    TRY(strings_list_files(&files, path, without_dot(folder), NULL, &dataset->left_out, error));
    for (size_t i = 0; i < files.count; i++)
        TRY(add_file(dataset, items, label, without_dot(files.items[i]), error));
    return OK;
}

/* Images beside the class folders are of no class. */
static status leave_out_loose(struct dataset *dataset, const char *path, struct error *error)
{
    SCOPED(directory_free) struct directory files = {0};
    size_t above = strlen(dataset->root) + strlen(dataset->folder) + 2;
    TRY(directory_list(&files, path, error));
    for (size_t i = 0; i < files.count; i++) {
        OWNED char *file = path_format("%s/%s", path, files.names[i]);
        bool loose = path_is_leftover(files.names[i]);
        if (!loose && !file_is_directory(file))
            TRY(image_file_recognize(&loose, file, error));
        if (loose)
            strings_add(&dataset->left_out, without_dot(file + above), strlen(without_dot(file + above)));
    }
    return OK;
}

status image_folder_list(struct dataset *dataset, const char *part, struct strings *names, struct dataset_items *items,
                         struct error *error)
{
    char path[DATASET_PATH];
    TRY(dataset_path(dataset, part, path, error));
    TRY(strings_list_folders(names, path, error));
    TRY(leave_out_loose(dataset, path, error));
    for (size_t i = 0; i < names->count; i++) {
        OWNED char *folder = path_format("%s/%s", part, names->items[i]);
        TRY(image_folder_add(dataset, folder, i, items, error));
    }
    return OK;
}

/* --- found -------------------------------------------------------------------------------------------------------- */

/* A folder that is not there, or that the user may not look into, has nothing. */
static status list_own(struct directory *files, const char *folder, struct error *error)
{
    *files = (struct directory){0};
    bool none = access(folder, R_OK | X_OK) != 0 && (errno == EACCES || errno == ENOENT || errno == ENOTDIR);
    return none ? OK : directory_list(files, folder, error);
}

static status has_images(bool *found, const char *folder, struct error *error)
{
    SCOPED(directory_free) struct directory files = {0};
    *found = false;
    TRY(list_own(&files, folder, error));
    for (size_t i = 0; i < files.count && !*found; i++) {
        OWNED char *path = path_format("%s/%s", folder, files.names[i]);
        if (!path_is_leftover(files.names[i]) && !file_is_directory(path))
            TRY(image_file_recognize(found, path, error));
    }
    return OK;
}

/* Whether a reader looks into this folder of the root, or it belongs to a download. */
static bool is_claimed(const char *name)
{
    size_t count, size = strlen(name);
    const struct dataset_reader *const *readers = dataset_readers(&count);
    if (path_is_leftover(name) || text_ends_with(name, ".download"))
        return true;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; readers[i]->folders[k] != NULL; k++)
            if (strcspn(readers[i]->folders[k], "/") == size && strncmp(readers[i]->folders[k], name, size) == 0)
                return true;
    return false;
}

/* Whether `least` of the folders in folder hold images. */
static status has_classes(bool *found, const char *folder, size_t least, struct error *error)
{
    SCOPED(directory_free) struct directory below = {0};
    TRY(list_own(&below, folder, error));
    for (size_t i = 0; i < below.count && least > 0; i++) {
        OWNED char *path = path_format("%s/%s", folder, below.names[i]);
        bool is_class = false;
        if (!is_claimed(below.names[i]) && file_is_directory(path))
            TRY(has_images(&is_class, path, error));
        least -= is_class;
    }
    *found = least == 0;
    return OK;
}

static status is_dataset(bool *found, const char *folder, struct error *error)
{
    OWNED char *train = path_format("%s/train", folder), *test = path_format("%s/test", folder);
    bool parts = file_is_directory(train);
    TRY(parts ? has_classes(found, train, 1, error) : has_classes(found, folder, 2, error));
    if (parts && *found)
        TRY(has_classes(found, test, 1, error));
    return OK;
}

status image_folder_recognize(bool *found, const char *folder, struct error *error)
{
    bool loose = false;
    TRY(is_dataset(found, folder, error));
    TRY(has_images(&loose, folder, error));
    *found = *found && !loose;
    return OK;
}

static void add_name(struct directory *found, const char *name)
{
    GROW(found->names, found->count);
    found->names[found->count++] = xstrdup(name);
}

status dataset_find_folders(const char *root, struct directory *found, struct directory *others, struct error *error)
{
    SCOPED(directory_free) struct directory below = {0};
    bool known;
    *found = *others = (struct directory){0};
    TRY(is_dataset(&known, root, error));
    if (known)
        add_name(found, ".");
    else
        TRY(directory_list(&below, root, error));
    status result = OK;
    for (size_t i = 0; result == OK && i < below.count; i++) {
        OWNED char *path = path_format("%s/%s", root, below.names[i]);
        if (!is_claimed(below.names[i]) && file_is_directory(path)) {
            result = is_dataset(&known, path, error);
            add_name(known ? found : others, below.names[i]);
        }
    }
    if (result != OK) {
        directory_free(found);
        directory_free(others);
    }
    return result;
}
