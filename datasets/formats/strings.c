#include "datasets/formats/strings.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/text.h"

void strings_add(struct strings *strings, const char *string, size_t size)
{
    GROW(strings->items, strings->count);
    char *copy = xstrndup(string, size);
    strings->items[strings->count++] = copy;
}

void strings_format(struct strings *strings, const char *format, ...)
{
    SCOPED(text_free) struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_add_list(&text, format, arguments);
    va_end(arguments);
    strings_add(strings, text.data, text.size);
}

void strings_copy(struct strings *strings, const char *const *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        strings_add(strings, items[i], strlen(items[i]));
}

void strings_free(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    *strings = (struct strings){0};
}

void strings_sort(struct strings *strings)
{
    if (strings->count > 1)
        qsort(strings->items, strings->count, sizeof *strings->items, array_by_text);
}

size_t strings_find_sorted(const struct strings *strings, const char *string)
{
    if (strings->count == 0)
        return 0;
    char **found = bsearch(&string, strings->items, strings->count, sizeof *strings->items, array_by_text);
    return found == NULL ? strings->count : (size_t)(found - strings->items);
}

void strings_add_lines(struct strings *strings, const char *text, size_t end)
{
    text_skip_mark(&text, &end);
    while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == '\r'))
        end--;
    for (size_t start = 0; start < end;) {
        const char *newline = memchr(text + start, '\n', end - start);
        size_t stop = newline != NULL ? (size_t)(newline - text) : end;
        size_t size = stop - start - (stop > start && text[stop - 1] == '\r');
        strings_add(strings, text + start, size);
        start = stop + 1;
    }
}

status strings_read_lines(struct strings *strings, const char *path, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    TRY(file_read(path, (size_t)1 << 30, &bytes, error));
    const uint8_t *nul = memchr(bytes.data, 0, bytes.size);
    if (nul != NULL)
        return error_set(error, ERROR_FORMAT, "%s: expected a text file, found a NUL byte at %zu", path,
                         (size_t)(nul - bytes.data));
    strings_add_lines(strings, (const char *)bytes.data, bytes.size);
    return OK;
}

status strings_check_texts(const struct strings *strings, const char *path, const char *what, struct error *error)
{
    enum { LONGEST = 1 << 15 }; /* bytes */
    for (size_t i = 0; i < strings->count; i++) {
        const char *line = strings->items[i], *invalid = text_find_invalid(line);
        if (line[strspn(line, " \t")] == 0)
            return error_set(error, ERROR_FORMAT, "%s:%zu: expected a %s, found an empty line", path, i + 1, what);
        if (invalid != NULL)
            return error_set(error, ERROR_FORMAT,
                             "%s:%zu: byte %zu of the line, 0x%02x, is not valid UTF-8; convert the file to UTF-8",
                             path, i + 1, (size_t)(invalid - line) + 1, (unsigned char)*invalid);
        if (strlen(line) > LONGEST)
            return error_set(error, ERROR_FORMAT, "%s:%zu: expected at most %d bytes in a line, found %zu", path, i + 1,
                             LONGEST, strlen(line));
    }
    return strings->count > 0 ? OK
                              : error_set(error, ERROR_FORMAT, "%s: expected a %s per line, found none", path, what);
}

/* Appends the folders below root/folder, folder itself first. */
static status list_tree(struct strings *folders, const char *root, const char *folder, int depth, struct error *error)
{
    enum { DEEPEST = 32 };
    if (depth > DEEPEST)
        return error_set(error, ERROR_FORMAT, "%s/%s: more than %d folders deep; does a symbolic link lead back?", root,
                         folder, DEEPEST);
    strings_add(folders, folder, strlen(folder));
    OWNED char *path = path_format("%s/%s", root, folder);
    SCOPED(strings_free) struct strings children = {0};
    TRY(strings_list_folders(&children, path, error));
    for (size_t i = 0; i < children.count; i++) {
        OWNED char *child = path_format("%s/%s", folder, children.items[i]);
        TRY(list_tree(folders, root, child, depth + 1, error));
    }
    return OK;
}

static status list_files_in(struct strings *files, const char *root, const char *folder,
                            bool (*wanted)(const char *name), struct strings *left_out, struct error *error)
{
    SCOPED(directory_free) struct directory directory = {0};
    OWNED char *path = path_format("%s/%s", root, folder);
    TRY(directory_list(&directory, path, error));
    for (size_t i = 0; i < directory.count; i++) {
        bool leftover = path_is_leftover(directory.names[i]), is_folder = false;
        struct strings *list = leftover ? left_out : files;
        if (list == NULL || (!leftover && wanted != NULL && !wanted(directory.names[i])))
            continue;
        OWNED char *file = path_format("%s/%s/%s", root, folder, directory.names[i]);
        if (!leftover)
            TRY(file_find_directory(&is_folder, file, error));
        if (!is_folder)
            strings_format(list, "%s", file + strlen(root) + 1);
    }
    return OK;
}

status strings_list_files(struct strings *strings, const char *root, const char *folder,
                          bool (*wanted)(const char *name), struct strings *left_out, struct error *error)
{
    SCOPED(strings_free) struct strings folders = {0};
    TRY(list_tree(&folders, root, folder, 0, error));
    strings_sort(&folders);
    for (size_t i = 0; i < folders.count; i++)
        TRY(list_files_in(strings, root, folders.items[i], wanted, left_out, error));
    return OK;
}

status strings_list_folders(struct strings *strings, const char *path, struct error *error)
{
    SCOPED(directory_free) struct directory directory = {0};
    TRY(directory_list(&directory, path, error));
    for (size_t i = 0; i < directory.count; i++) {
        bool is_folder = false;
        if (path_is_leftover(directory.names[i]))
            continue;
        OWNED char *child = path_format("%s/%s", path, directory.names[i]);
        TRY(file_find_directory(&is_folder, child, error));
        if (is_folder)
            strings_add(strings, directory.names[i], strlen(directory.names[i]));
    }
    return OK;
}
