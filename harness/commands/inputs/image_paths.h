/* The image files that a command line means: files, folders with all that is below them, and lists.
 *
 *     struct image_paths *paths;
 *     const char *path;
 *     TRY(image_paths_open(&paths, call->arguments, call->argument_count, "list.txt", stop, error));
 *     do {
 *         TRY(image_paths_next(paths, &path, error));          // borrowed until the next call; NULL: there are no more
 *     } while (path != NULL);
 *     image_paths_close(paths);
 *
 * Of a folder: the files that begin as an image or are named as one, in the byte order of their paths; links are
 * followed. Nothing but the names of the folders on the way is held in memory.
 */
#ifndef MTIL_HARNESS_COMMANDS_INPUTS_IMAGE_PATHS_H
#define MTIL_HARNESS_COMMANDS_INPUTS_IMAGE_PATHS_H

#include <stddef.h>

#include "core/status.h"
#include "harness/terminal/stop.h"

struct image_paths;

/* Arguments are borrowed; "@FILE" and list (NULL: none) name a file with a path per line, relative to where the program
 * runs; list comes after the arguments. An argument or a list that is not there, or is no file or folder, is an error at
 * once. stop may be NULL. */
status image_paths_open(struct image_paths **paths, const char *const *arguments, size_t count, const char *list,
                        const struct stop *stop, struct error *error);

/* A folder or a line that cannot be read is an error, after which the next call goes on behind it. */
status image_paths_next(struct image_paths *paths, const char **path, struct error *error);
void image_paths_close(struct image_paths *paths); /* NULL is allowed */

#endif
