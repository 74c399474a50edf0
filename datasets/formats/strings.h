/* A growing list of strings: class names, templates, the lines of a text file, the files below a folder.
 *
 *     struct strings lines = {0};
 *     TRY(strings_read_lines(&lines, "variants.txt", error));
 *     for (size_t i = 0; i < lines.count; i++) … lines.items[i] …
 *     strings_free(&lines);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

struct strings {
    size_t count;
    char **items;
};

/* Copies size bytes of string, which hold no NUL, to the end of the list. */
void strings_add(struct strings *strings, const char *string, size_t size);
void strings_copy(struct strings *strings, const char *const *items, size_t count);      /* to the end, all of them */
void strings_format(struct strings *strings, const char *format, ...) PRINTF_LIKE(2, 3); /* one more */
void strings_free(struct strings *strings);

void strings_sort(struct strings *strings); /* by bytes */

/* The position of string in a list sorted by bytes; count when it is not there. */
size_t strings_find_sorted(const struct strings *strings, const char *string);

/* The lines of a text, appended without their ends (\n or \r\n); empty lines at the end are left out. */
void strings_add_lines(struct strings *strings, const char *text, size_t size);

/* Reads the lines of a file of at most 1 GiB; a NUL byte is an error. */
status strings_read_lines(struct strings *strings, const char *path, struct error *error);

/* The lines of path; each is one `what` ("class name"). A file without lines is an error, and so is a line that is
 * empty, not UTF-8, or longer than 32 KiB. */
status strings_check_texts(const struct strings *strings, const char *path, const char *what, struct error *error);

/* The files below root/folder whose name `wanted` accepts (NULL: every file), as "folder/…/name"; a link that leads
 * nowhere counts as a file, and fails when it is read. Folders in byte order of their path, files in byte order
 * within them; symbolic links are followed, 32 levels deep at most. Files that systems leave behind
 * (path_is_leftover) are left out, and appended to left_out unless that is NULL. */
status strings_list_files(struct strings *strings, const char *root, const char *folder,
                          bool (*wanted)(const char *name), struct strings *left_out, struct error *error);

/* The folders directly in path, sorted, without those that systems leave. */
status strings_list_folders(struct strings *strings, const char *path, struct error *error);
