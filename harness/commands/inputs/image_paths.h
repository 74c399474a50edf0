/* The image files named on a command line: files, folders with everything below them, and lists.
 *
 *     struct image_paths *paths;
 *     const char *path;
 *     TRY(image_paths_open(&paths, call->arguments, call->argument_count, "list.txt", stop, error));
 *     do {
 *         TRY(image_paths_next(paths, &path, error));          // borrowed until the next call; NULL: no more
 *     } while (path != NULL);
 *     image_paths_close(paths);
 *
 * Of a folder: the files whose content or name is that of an image, in byte order of their paths; links are followed.
 * Only the names in the folders being walked are held in memory.
 */
#pragma once

#include <stddef.h>

#include "core/status.h"
#include "harness/terminal/stop.h"

struct image_paths;

/* Arguments are borrowed; "@FILE" and list (NULL: none) name a file with a path per line, relative to where the
 * program runs; list comes after the arguments. A missing argument or list, or one that is neither file nor folder,
 * is an immediate error. stop may be NULL. */
status image_paths_open(struct image_paths **paths, const char *const *arguments, size_t count, const char *list,
                        const struct stop *stop, struct error *error);

/* A folder or line that cannot be read is an error; the next call continues after it. */
status image_paths_next(struct image_paths *paths, const char **path, struct error *error);
void image_paths_close(struct image_paths *paths); /* NULL is allowed */
