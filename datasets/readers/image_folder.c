#include "datasets/readers/image_folder.h"

#include <stdlib.h>
#include <string.h>

#include "core/file.h"

static status add_class(struct dataset *dataset, const char *part, const char *name, size_t label,
                        struct dataset_items *items, struct error *error)
{
    char path[DATASET_PATH];
    struct strings files = {0};
    char *folder = path_format("%s/%s", part, name);
    TRY(dataset_path(dataset, "", path, error));
    path[strlen(path) - 1] = 0; /* no slash at the end: names are relative to it */
    status result = folder != NULL ? strings_list_files(&files, path, folder, image_has_ending, error)
                                   : error_set(error, ERROR_MEMORY, "%s: no memory for a name", path);
    for (size_t i = 0; result == OK && i < files.count; i++)
        result = dataset_add_file(dataset, items, label, error, "%s", files.items[i]);
    strings_free(&files);
    free(folder);
    return result;
}

status image_folder_list(struct dataset *dataset, const char *part, struct strings *names, struct dataset_items *items,
                         struct error *error)
{
    char path[DATASET_PATH];
    TRY(dataset_path(dataset, part, path, error));
    TRY(strings_list_folders(names, path, error));
    for (size_t i = 0; i < names->count; i++)
        TRY(add_class(dataset, part, names->items[i], i, items, error));
    return OK;
}
