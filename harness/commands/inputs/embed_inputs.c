#include "harness/commands/inputs/embed_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/characters.h"
#include "core/file.h"

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

static status check_line(const struct embed_inputs *inputs, const char *line, size_t length, struct error *error)
{
    if (strlen(line) != length)
        return error_set(error, ERROR_FORMAT, "%s:%zu: expected text, found a NUL byte", inputs->path,
                         inputs->count + 1);
    if (line[strspn(line, " \t")] == 0)
        return error_set(error, ERROR_FORMAT, "%s:%zu: expected a text, found an empty line; remove it", inputs->path,
                         inputs->count + 1);
    return OK;
}

/* The lines of bytes, cut in place at their ends (\n or \r\n). */
static status split_lines(struct embed_inputs *inputs, struct bytes *bytes, struct error *error)
{
    const char *begin = (const char *)bytes->data;
    size_t lines = 1, size = bytes->size;
    text_skip_mark(&begin, &size);
    char *text = (char *)bytes->data + (bytes->size - size);
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    inputs->names = xcalloc(lines, sizeof *inputs->names);
    for (size_t first = 0; first < size;) {
        char *line = text + first, *end = memchr(line, '\n', size - first);
        size_t length = end != NULL ? (size_t)(end - line) : size - first;
        first += length + 1;
        length -= length > 0 && line[length - 1] == '\r';
        line[length] = 0;
        TRY(check_line(inputs, line, length, error));
        inputs->names[inputs->count] = xstrdup(line);
        inputs->count++;
    }
    return OK;
}

static status list_texts(struct embed_inputs *inputs, struct error *error)
{
    struct bytes bytes;
    TRY(file_read(inputs->path, FILE_LIMIT, &bytes, error));
    status result = split_lines(inputs, &bytes, error);
    bytes_free(&bytes);
    if (result == OK && inputs->count == 0)
        return error_set(error, ERROR_ARGUMENT, "%s: expected texts, one per line, found an empty file", inputs->path);
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
