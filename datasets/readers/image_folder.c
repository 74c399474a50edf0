#include "datasets/readers/image_folder.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"

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
