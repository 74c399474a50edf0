/* Folders of class folders of images: found by their content, and listed. */
#include <stdlib.h>
#include <string.h>

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
    TRY(dataset_path(dataset, file, path, error));
    if (image_file_recognized(path))
        return dataset_add_file(dataset, items, label, error, "%s", file);
    strings_add(&dataset->left_out, file, strlen(file));
    return OK;
}

status image_folder_add(struct dataset *dataset, const char *folder, size_t label, struct dataset_items *items,
                        struct error *error)
{
    char path[DATASET_PATH];
    struct strings files = {0};
    TRY(dataset_path(dataset, "", path, error));
    path[strlen(path) - 1] = 0; /* no slash at the end: names are relative to it */
    status result = strings_list_files(&files, path, folder, NULL, error);
    for (size_t i = 0; result == OK && i < files.count; i++)
        result = add_file(dataset, items, label, without_dot(files.items[i]), error);
    strings_free(&files);
    return result;
}

/* Images beside the class folders are of no class. */
static status leave_out_loose(struct dataset *dataset, const char *path, struct error *error)
{
    struct directory files;
    size_t above = strlen(dataset->root) + strlen(dataset->folder) + 2;
    TRY(directory_list(&files, path, error));
    for (size_t i = 0; i < files.count; i++) {
        char *file = path_format("%s/%s", path, files.names[i]);
        if (!file_is_directory(file) && image_file_recognized(file))
            strings_add(&dataset->left_out, without_dot(file + above), strlen(without_dot(file + above)));
        free(file);
    }
    directory_free(&files);
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
        char *folder = path_format("%s/%s", part, names->items[i]);
        status result = image_folder_add(dataset, folder, i, items, error);
        free(folder);
        TRY(result);
    }
    return OK;
}

/* --- found -------------------------------------------------------------------------------------------------------- */

static bool has_images(const char *folder)
{
    struct directory files;
    bool found = false;
    if (directory_list(&files, folder, NULL) != OK)
        return false;
    for (size_t i = 0; i < files.count && !found; i++) {
        char *path = path_format("%s/%s", folder, files.names[i]);
        found = !file_is_directory(path) && image_file_recognized(path);
        free(path);
    }
    directory_free(&files);
    return found;
}

/* Whether a reader looks into this folder of the root, or it belongs to a download. */
static bool is_claimed(const char *name)
{
    size_t count, size = strlen(name);
    const struct dataset_reader *const *readers = dataset_readers(&count);
    if (name[0] == '.' || text_ends_with(name, ".download"))
        return true;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; readers[i]->folders[k] != NULL; k++)
            if (strcspn(readers[i]->folders[k], "/") == size && strncmp(readers[i]->folders[k], name, size) == 0)
                return true;
    return false;
}

/* Whether `least` of the folders in folder hold images. */
static bool has_classes(const char *folder, size_t least)
{
    struct directory below;
    size_t classes = 0;
    if (directory_list(&below, folder, NULL) != OK)
        return false;
    for (size_t i = 0; i < below.count && classes < least; i++) {
        char *path = is_claimed(below.names[i]) ? NULL : path_format("%s/%s", folder, below.names[i]);
        classes += path != NULL && file_is_directory(path) && has_images(path);
        free(path);
    }
    directory_free(&below);
    return classes == least;
}

static bool is_dataset(const char *folder)
{
    char *train = path_format("%s/train", folder), *test = path_format("%s/test", folder);
    bool parts = file_is_directory(train);
    bool found = parts ? has_classes(train, 1) && has_classes(test, 1) : has_classes(folder, 2);
    free(train);
    free(test);
    return found;
}

bool image_folder_recognized(const char *folder)
{
    return is_dataset(folder) && !has_images(folder);
}

static void add_name(struct directory *found, const char *name)
{
    GROW(found->names, found->count);
    found->names[found->count++] = xstrdup(name);
}

status dataset_find_folders(const char *root, struct directory *found, struct directory *others, struct error *error)
{
    struct directory below = {0};
    *found = *others = (struct directory){0};
    if (is_dataset(root)) {
        add_name(found, ".");
        return OK;
    }
    TRY(directory_list(&below, root, error));
    for (size_t i = 0; i < below.count; i++) {
        char *path = is_claimed(below.names[i]) ? NULL : path_format("%s/%s", root, below.names[i]);
        if (path != NULL && file_is_directory(path))
            add_name(is_dataset(path) ? found : others, below.names[i]);
        free(path);
    }
    directory_free(&below);
    return OK;
}
