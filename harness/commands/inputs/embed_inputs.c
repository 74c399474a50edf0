#include "harness/commands/inputs/embed_inputs.h"

#include <stdlib.h>

#include "core/file.h"
#include "datasets/formats/strings.h"

void embed_inputs_free(struct embed_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        free(inputs->names[i]);
    free(inputs->names);
}

/* The names in a folder without sub-folders; takes over the result of directory_list. */
static status list_images(struct embed_inputs *inputs, struct error *error)
{
    struct directory directory;
    TRY(directory_list(&directory, inputs->path, error));
    inputs->names = directory.names;
    for (size_t i = 0; i < directory.count; i++) {
        char *path = path_format("%s/%s", inputs->path, directory.names[i]);
        if (file_is_directory(path))
            free(directory.names[i]);
        else
            inputs->names[inputs->count++] = directory.names[i];
        free(path);
    }
    if (inputs->count == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: expected image files, found none (sub-folders are not searched)",
                         inputs->path);
    return OK;
}

static status list_texts(struct embed_inputs *inputs, struct error *error)
{
    struct strings lines = {0};
    status result = strings_read_lines(&lines, inputs->path, error);
    NEXT(result, strings_check_texts(&lines, inputs->path, "text", error));
    inputs->names = lines.items;
    inputs->count = lines.count;
    return result;
}

status embed_inputs_open(struct embed_inputs *inputs, const char *images, const char *texts, struct error *error)
{
    if ((images != NULL) == (texts != NULL))
        return error_set(error, ERROR_ARGUMENT,
                         "command line: embed: expected either --images FOLDER or --texts FILE, found %s",
                         images != NULL ? "both" : "neither");
    *inputs = (struct embed_inputs){.images = images != NULL, .path = images != NULL ? images : texts};
    status result = (inputs->images ? list_images : list_texts)(inputs, error);
    if (result != OK)
        embed_inputs_free(inputs);
    return result;
}
